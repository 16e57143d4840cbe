#include "thinwire/train/optim/freeze_policy.hpp"

#include <algorithm>
#include <cmath>

namespace thinwire::train {
namespace {

constexpr double kStable = 0.96;
constexpr std::int64_t kChecksPerRun = 20;
constexpr std::int64_t kLateShare = 5;  // warn after 1/5 of the run

}  // namespace

FreezePolicy::FreezePolicy(const FreezeSettings& settings) : settings_(settings) {
  interval_ = static_cast<std::int64_t>(std::ceil(1 / (1 - settings.beta2) - 1e-6));
  if (settings.total_steps > 0) interval_ = std::min(interval_, settings.total_steps / kChecksPerRun);
  interval_ = std::max<std::int64_t>(interval_, 1);
}

bool FreezePolicy::wants_variance(std::int64_t step, double lr) {
  if (lr > state_.last_lr) state_.risen_at = step;
  state_.last_lr = lr;
  return settings_.freeze_step < 0 && step % interval_ == 0;
}

bool FreezePolicy::warmed_up(std::int64_t step) const {
  if (settings_.lr_warmup_steps >= 0) return step >= settings_.lr_warmup_steps;
  return step - state_.risen_at >= interval_;
}

bool FreezePolicy::measured(std::int64_t step, double variance_norm) {
  const double before = state_.norm_before;
  state_.norm_before = variance_norm;
  if (before <= 0 || variance_norm <= 0) return false;
  state_.ratio = variance_norm / before;
  return warmed_up(step) && std::min(state_.ratio, 1 / state_.ratio) >= kStable;
}

bool FreezePolicy::late(std::int64_t step) {
  const bool now = settings_.freeze_step < 0 && settings_.total_steps > 0 && state_.warned == 0 &&
                   step < settings_.total_steps && step * kLateShare >= settings_.total_steps;
  if (now) state_.warned = 1;
  return now;
}

}  // namespace thinwire::train
