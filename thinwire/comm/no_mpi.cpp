#include "thinwire/comm/no_mpi.hpp"

namespace thinwire::comm {

std::string mpi_absent_reason() {
  return "groups over MPI are not implemented; programs under mpirun and srun communicate through Gloo";
}

}  // namespace thinwire::comm
