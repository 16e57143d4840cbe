// What a run did, in numbers: step times, bytes, evaluations; as progress lines, as a result, and inside a checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/training/flags.hpp"
#include "thinwire/schema/step_report.hpp"

namespace examples {

// Of one rank. Times are those of training steps (forward to update); evaluation and checkpoints are left out, so that
// runs that evaluate more often are not punished for it.
class RunRecord {
 public:
  RunRecord(const TrainingFlags& flags, const thinwire::DataParallel& parallel);

  void begin_step();
  void end_step(std::int64_t step, double loss, const thinwire::schema::StepReport& report);

  // `numbers`: what this evaluation found, for example {"accuracy", 0.86}. Step and time are added.
  void add_evaluation(std::int64_t steps_done, nlohmann::ordered_json numbers);

  // Training time of the first evaluation in which `number` was at least `target`; null: none was, or target is 0.
  nlohmann::ordered_json seconds_until(const std::string& number, double target) const;

  // Prints a line to stderr on rank 0 when it is time: on a terminal over the last one, else one per line.
  void show_progress(std::int64_t step, double loss, const thinwire::schema::StepReport& report);

  // For TrainerState::extra, so that a resumed run reports as one that was never interrupted.
  // restore throws thinwire::Error kMismatch when the checkpoint is of a run that took its samples in another order
  // (--seed, --micro-batch, --accumulate).
  std::string save() const;
  void restore(const std::string& text);

  // `extra`: the numbers that the program itself reports. On rank 0 printed as one line and written to --result.
  void finish(const nlohmann::ordered_json& extra) const;

 private:
  nlohmann::ordered_json summary() const;

  TrainingFlags flags_;
  const thinwire::DataParallel& parallel_;
  std::int64_t samples_per_step_;  // by all ranks
  double step_began_s_ = 0;
  double next_progress_s_ = 0;
  bool terminal_;

  std::vector<double> step_seconds_;
  std::int64_t steps_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::int64_t last_step_bytes_ = 0;
  double exposed_s_ = 0;
  nlohmann::ordered_json evaluations_ = nlohmann::ordered_json::array();
};

// What the library has to say (the freeze of 1-bit Adam, a parameter without gradients) goes to stderr, on rank 0.
void print_messages(int rank);

}  // namespace examples
