// Whether groups over MPI are compiled in. In the header, since the command that is built without Torch says it too.
#pragma once

#include <string>

namespace thinwire::comm {

// Empty when they are.
inline std::string mpi_absent_reason() {
  return "this version has no groups over MPI; under mpirun and srun the ranks talk over Gloo";
}

}  // namespace thinwire::comm
