#include <string>

#include "thinwire/cli/verbs.hpp"
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
  text += "MPI            no: this version has no MPI group; under mpirun the ranks talk over Gloo\n";
  text += "Python         no: this version has no Python package\n";
  return text;
}

}  // namespace thinwire::cli
