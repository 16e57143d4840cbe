#include "examples/training/optimizer.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace examples {
namespace {

template <class Settings>
Settings adam_settings(const TrainingFlags& flags) {
  Settings settings;
  settings.lr = flags.lr;
  settings.beta1 = flags.beta1;
  settings.beta2 = flags.beta2;
  settings.weight_decay = flags.weight_decay;
  return settings;
}

std::unique_ptr<torch::optim::Optimizer> make_adamw(thinwire::DataParallel& parallel, const TrainingFlags& flags) {
  const auto settings = adam_settings<thinwire::AdamWSettings>(flags);
  return std::make_unique<thinwire::AdamW>(parallel, settings);
}

std::unique_ptr<torch::optim::Optimizer> make_one_bit(thinwire::DataParallel& parallel, const TrainingFlags& flags) {
  auto settings = adam_settings<thinwire::OneBitAdamSettings>(flags);
  settings.warmup_codec = flags.warmup_codec;
  if (!flags.codec.empty()) settings.codec = flags.codec;
  settings.freeze_step = flags.freeze_step;
  settings.total_steps = flags.steps;
  settings.lr_warmup_steps = flags.lr_warmup_steps;
  return std::make_unique<thinwire::OneBitAdam>(parallel, settings);
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(thinwire::DataParallel& parallel, const TrainingFlags& flags) {
  return flags.optimizer == "one_bit" ? make_one_bit(parallel, flags) : make_adamw(parallel, flags);
}

std::int64_t frozen_at(const torch::optim::Optimizer& optimizer) {
  const auto* one_bit = dynamic_cast<const thinwire::OneBitAdam*>(&optimizer);
  return one_bit == nullptr ? -1 : one_bit->frozen_at();
}

double warm_up_cosine(const WarmUpCosineShape& shape, std::int64_t step) {
  if (step < shape.warmup_steps)
    return shape.peak * static_cast<double>(step + 1) / static_cast<double>(shape.warmup_steps);
  const auto falling = static_cast<double>(std::max<std::int64_t>(shape.total_steps - shape.warmup_steps, 1));
  const double done = std::min(1.0, static_cast<double>(step - shape.warmup_steps) / falling);
  return shape.end + (shape.peak - shape.end) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

// torch's step() asks for the rates of step_count_, sets them and counts.
WarmUpCosine::WarmUpCosine(torch::optim::Optimizer& optimizer, const WarmUpCosineShape& shape, std::int64_t first_step)
    : LRScheduler(optimizer), shape_(shape) {
  step_count_ = static_cast<unsigned>(first_step);
  step();
}

std::vector<double> WarmUpCosine::get_lrs() {
  return std::vector<double>(get_current_lrs().size(), warm_up_cosine(shape_, step_count_));
}

WarmUpCosineShape schedule_shape(const TrainingFlags& flags) {
  return {.peak = flags.lr, .end = flags.lr_end, .warmup_steps = flags.lr_warmup_steps, .total_steps = flags.steps};
}

}  // namespace examples
