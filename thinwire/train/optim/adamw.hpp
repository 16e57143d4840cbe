// AdamW over the reducer's buckets (Loshchilov and Hutter, arXiv 1711.05101; order of operations as torch.optim.AdamW).
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/optim/group_options.hpp"

namespace thinwire::train {

struct AdamWSettings {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // decoupled
};

using AdamWOptions = GroupOptions<AdamWSettings>;

class AdamW : public torch::optim::Optimizer {
 public:
  // One group with all parameters of the module, or the caller's own groups (options: AdamWOptions).
  explicit AdamW(DataParallel& parallel, AdamWSettings settings = {});
  AdamW(DataParallel& parallel, const std::vector<torch::optim::OptimizerParamGroup>& groups, AdamWSettings settings);
  ~AdamW() override;

  // Takes the step with the mean gradients of the last backward and commits the exchange. Changes nothing at all, on
  // any rank, when a gradient was not finite somewhere. `closure`, if given, runs forward and backward first.
  torch::Tensor step(LossClosure closure = nullptr) override;

  // torch::save/load of moments and step; whole checkpoints with residuals: train/checkpoint/checkpoint.hpp.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
