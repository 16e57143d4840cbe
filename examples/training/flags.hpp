// The command line that both examples share, and how its values become thinwire's settings.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "thinwire/thinwire.hpp"

namespace CLI {
class App;
}

namespace examples {

struct TrainingFlags {
  std::string optimizer = "adamw";    // adamw | one_bit
  std::string codec;                  // empty: fp32 for adamw, one_bit (after the freeze) for one_bit
  std::string warmup_codec = "int4";  // one_bit before its freeze
  std::int64_t freeze_step = -1;      // -1: automatic
  std::string clip_mode = "exact";    // exact | predicted
  double max_grad_norm = 1.0;         // 0: no clipping
  std::int64_t micro_batch = 12;      // samples per rank and backward pass
  std::int64_t accumulate = 1;        // backward passes per optimizer step
  std::int64_t steps = 2000;
  std::int64_t stop_after = 0;  // ends early, with a checkpoint, for jobs with a time limit; 0: never
  std::uint64_t seed = 1;       // of the initial weights and of the order of the samples
  double lr = 1e-3;             // after the warm-up
  double lr_end = 1e-4;         // after the last step
  std::int64_t lr_warmup_steps = 100;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
  std::int64_t eval_every = 0;  // 0: only after the last step
  std::string checkpoint;       // directory; empty: none
  std::int64_t save_every = 0;  // 0: only after the last step
  bool resume = false;
  std::string log;              // one JSON line per step
  std::string trace;            // Chrome trace
  std::string result;           // the result line goes here as well
  double progress_every_s = 0;  // 0: 10 s, on a terminal 0.5 s
};

void add_training_flags(CLI::App& app, TrainingFlags& flags);

thinwire::DataParallelSettings parallel_settings(const TrainingFlags& flags);

// The step after which this run ends.
std::int64_t last_step(const TrainingFlags& flags);

inline bool is_due(std::int64_t steps_done, std::int64_t every) {
  return every > 0 && steps_done % every == 0;
}

// A command line that parses and cannot be carried out.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parses, then runs `body`. Returns the exit status: 0, 1 for an exception (one line "NAME: what" on stderr), 2 for a
// command line that does not parse or a UsageError.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

}  // namespace examples
