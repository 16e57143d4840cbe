#include <string>

#include "thinwire/cli/verbs.hpp"
#include "thinwire/comm/no_mpi.hpp"
#include "thinwire/version.hpp"

namespace thinwire::cli {

std::string version_text() {
  const bool torch = !std::string(kTorchVersion).empty();
  std::string text = "thinwire " + std::string(kVersion) + "\n";
  text += torch ? "torch          " + std::string(kTorchVersion) + "\n"
                : "torch          none: " + std::string(kTorchWhyNot) + "\n";
  text += torch ? "training half  yes (Gloo)\n" : "training half  no: needs torch\n";
  text += "planning half  yes\n";
  text += "CUDA           no: this version has no CUDA kernels\n";
  const std::string no_mpi = comm::mpi_absent_reason();
  text += "MPI            " + (no_mpi.empty() ? "yes" : "no: " + no_mpi) + "\n";
  text += "Python         no: this version has no Python package\n";
  return text;
}

}  // namespace thinwire::cli
