// SGD with optional momentum over the reducer's buckets; arithmetic as torch.optim.SGD (dampening 0, no Nesterov).
// Without momentum the residuals follow the learning rate (rescaled by lr before / lr now, docs/algorithms.md).
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/optim/group_options.hpp"

namespace thinwire::train {

struct SgdSettings {
  double lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;  // added to the gradient after the exchange, as torch does
};

using SgdOptions = GroupOptions<SgdSettings>;

// `parallel` must outlive it.
class Sgd : public torch::optim::Optimizer {
 public:
  explicit Sgd(DataParallel& parallel, SgdSettings settings = {});
  Sgd(DataParallel& parallel, const std::vector<torch::optim::OptimizerParamGroup>& groups, SgdSettings settings);
  ~Sgd() override;
  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
