// When the variance of 1-bit Adam may be frozen. Pure arithmetic; the same numbers go in on every rank.
#pragma once

#include <cstdint>

namespace thinwire::train {

struct FreezeSettings {
  std::int64_t freeze_step = -1;      // after that many steps; -1: automatic
  std::int64_t total_steps = 0;       // 0: unknown
  std::int64_t lr_warmup_steps = -1;  // -1: over once lr has not risen for one interval
  double beta2 = 0.999;
};

// The automatic test compares the variance with that of one interval before: stable when min(r, 1/r) >= 0.96 with
// r = |v_hat now|_1 / |v_hat before|_1 (0.96 as in the published algorithm), and the learning rate's warm-up is over.
class FreezePolicy {
 public:
  explicit FreezePolicy(const FreezeSettings& settings);

  // ceil(1 / (1 - beta2)) steps, or total_steps / 20 when that is known and smaller.
  std::int64_t interval() const { return interval_; }

  // After step number `step` (1, 2, ...), taken with `lr`. True when the variance must be measured now.
  bool wants_variance(std::int64_t step, double lr);
  // The 1-norm of the bias-corrected variance of the body at this step. True: freeze now.
  bool measured(std::int64_t step, double variance_norm);
  // True when a fixed step was asked for and has come.
  bool fixed(std::int64_t step) const { return settings_.freeze_step >= 0 && step >= settings_.freeze_step; }
  // True once, when a fifth of the run has passed without a freeze and some of it is left.
  bool late(std::int64_t step);

  double ratio() const { return state_.ratio; }

  // Everything that the next answers depend on, for checkpoints.
  struct State {
    double norm_before = 0;
    double ratio = 0;
    double last_lr = 0;
    std::int64_t risen_at = 0;
    std::int64_t warned = 0;
  };
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  bool warmed_up(std::int64_t step) const;

  FreezeSettings settings_;
  std::int64_t interval_;
  State state_;
};

}  // namespace thinwire::train
