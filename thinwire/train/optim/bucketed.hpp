// What our optimizers share: which group a parameter belongs to, and the frame of a step around the reducer's outcome.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "thinwire/train/ddp/reducer.hpp"

namespace thinwire::train {

// One group with every parameter of the module.
std::vector<torch::optim::OptimizerParamGroup> all_parameters(DataParallel& parallel);

// Torch merges a group's options with the defaults field by field and knows only its own option types: ours would all
// become the defaults. Puts the options that the caller gave back into `merged` and returns it.
const std::vector<torch::optim::OptimizerParamGroup>& with_own_options(
    std::vector<torch::optim::OptimizerParamGroup>& merged,
    const std::vector<torch::optim::OptimizerParamGroup>& given);

class Bucketed {
 public:
  // (collective) Tells the reducer the groups, which must outlive this object. Throws Error kInvalidArgument for a
  // tensor that is not a parameter of the module or lies in two groups, kMismatch when groups or `settings` differ
  // between ranks.
  Bucketed(Reducer& reducer, const std::vector<torch::optim::OptimizerParamGroup>& groups,
           const std::vector<Fact>& settings);

  Reducer& reducer() const { return reducer_; }
  // -1: in no group, never updated.
  int group_of(int parameter) const { return group_of_[parameter]; }
  std::size_t count() const { return group_of_.size(); }
  const Parameter& parameter(std::size_t i) const { return reducer_.parameters()[i]; }
  std::span<float> values(std::size_t i) const;
  std::span<const float> gradient(std::size_t i) const;
  // True when the step changes this parameter: it is in a group and some rank has a gradient for it.
  bool updates(std::size_t i) const { return group_of_[i] >= 0 && reducer_.used(static_cast<int>(i)); }

  // Throws Error kState when groups or tensors were added since. Runs the closure, takes what the reducer has, calls
  // `update` unless the step is skipped, commits, and compares the state of all ranks when that is due (`state`:
  // tensors besides the parameters).
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
  torch::Tensor step(const torch::optim::Optimizer::LossClosure& closure, const std::function<void()>& update,
                     const std::function<NamedTensors()>& state) const;

 private:
  Reducer& reducer_;
  const std::vector<torch::optim::OptimizerParamGroup>& groups_;
  std::size_t tensors_;  // in all groups
  std::vector<int> group_of_;
};

// Routes for gradients under a live optimizer: body through `codec`, embeddings as int8, the rest dense; all dense when
// the codec is lossless. Throws Error kInvalidArgument for one_bit unless `allow_one_bit`.
std::vector<ParameterRoute> gradient_routes(const std::vector<Parameter>& parameters, const std::string& codec,
                                            bool allow_one_bit);

}  // namespace thinwire::train
