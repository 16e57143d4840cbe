// The optimizer that the flags ask for, and its learning rate over the run.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "examples/training/flags.hpp"

namespace examples {

// One parameter group, so that weight decay is the same for every parameter and every optimizer. (Leaving out norms and
// biases is common, too; it would only move the baseline.)
std::unique_ptr<torch::optim::Optimizer> make_optimizer(thinwire::DataParallel& parallel, const TrainingFlags& flags);

// Number of steps before 1-bit Adam froze the variance; -1: not yet, or another optimizer.
std::int64_t frozen_at(const torch::optim::Optimizer& optimizer);

struct WarmUpCosineShape {
  double peak = 1e-3;
  double end = 1e-4;
  std::int64_t warmup_steps = 100;
  std::int64_t total_steps = 2000;
};

// Rises linearly to the peak, then falls as half a cosine. `step` counts from 0.
double warm_up_cosine(const WarmUpCosineShape& shape, std::int64_t step);

// Sets the rate of `first_step` at once; step() after each optimizer step sets the next one.
class WarmUpCosine final : public torch::optim::LRScheduler {
 public:
  WarmUpCosine(torch::optim::Optimizer& optimizer, const WarmUpCosineShape& shape, std::int64_t first_step);

 private:
  std::vector<double> get_lrs() override;

  WarmUpCosineShape shape_;
};

WarmUpCosineShape schedule_shape(const TrainingFlags& flags);

}  // namespace examples
