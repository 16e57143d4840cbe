// What torch's learning-rate schedulers see and change, per parameter group.
#pragma once

#include <torch/optim/optimizer.h>

#include <utility>

namespace thinwire::train {

// `Settings` has a member `lr`.
template <class Settings>
class GroupOptions : public torch::optim::OptimizerCloneableOptions<GroupOptions<Settings>> {
 public:
  explicit GroupOptions(Settings settings = {}) : settings_(std::move(settings)) {}
  double get_lr() const override { return settings_.lr; }
  void set_lr(const double lr) override { settings_.lr = lr; }
  const Settings& settings() const { return settings_; }
  Settings& settings() { return settings_; }

 private:
  Settings settings_;
};

}  // namespace thinwire::train
