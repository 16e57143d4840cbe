// What torch's learning-rate schedulers see and change, per parameter group.
#pragma once

#include <torch/optim/optimizer.h>

#include <utility>

#include "thinwire/base/error.hpp"

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

// The settings of a group. Throws Error kInvalidArgument when its options are those of another optimizer.
template <class Settings>
const Settings& group_settings(const torch::optim::OptimizerParamGroup& group) {
  if (const auto* options = dynamic_cast<const GroupOptions<Settings>*>(&group.options())) return options->settings();
  fail(ErrorCode::kInvalidArgument,
       {"train::optimizer", "options of a parameter group", "those of another optimizer", "the optimizer's own",
        "thinwire's AdamWOptions, SgdOptions or OneBitAdamOptions, as the optimizer's name says"});
}

}  // namespace thinwire::train
