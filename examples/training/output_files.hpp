// Whether a run will be able to write what it is to write: found before training, not hours later.
#pragma once

#include <string>

#include "examples/training/flags.hpp"

namespace examples {

// `path`: what was given with `flag`; empty: nothing to write. Throws UsageError.
void check_output_file(const char* flag, const std::string& path);

// (collective) The checkpoint's directory, which is made if missing, and the files of this rank. Throws UsageError on
// every rank when one cannot write.
void check_output_files(const TrainingFlags& flags, thinwire::World& world);

}  // namespace examples
