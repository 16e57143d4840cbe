// Whether groups over MPI are compiled in.
#pragma once

#include <string>

namespace thinwire::comm {

// Empty when they are.
std::string mpi_absent_reason();

}  // namespace thinwire::comm
