// The run's events as a Chrome trace.
#pragma once

#include "examples/training/flags.hpp"

namespace examples {

// Every rank writes its own file (--trace); nothing without that flag. Throws thinwire::Error kIo.
void write_trace(const TrainingFlags& flags, thinwire::DataParallel& parallel);

}  // namespace examples
