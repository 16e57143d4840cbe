// 1-bit Adam (Tang et al., ICML 2021, arXiv 2102.02888, Algorithm 1), with the changes of docs/algorithms.md: AdamW
// with compressed gradients until the variance is stable, then one bit per element of the momentum with the variance
// frozen.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/optim/group_options.hpp"

namespace thinwire::train {

struct OneBitAdamSettings {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;         // decoupled, outside the compressor
  std::string warmup_codec = "int4";  // before the freeze: fp32, bf16, int8, int4
  std::string codec = "one_bit";      // after it; "one_bit:scale=mean_abs" for the paper's scale
  std::int64_t freeze_step = -1;      // -1: when the variance is stable (automatic); else after that many steps
  std::int64_t total_steps = 0;       // if known: the automatic freeze checks at least 20 times and warns when late
  std::int64_t lr_warmup_steps = -1;  // no automatic freeze before; -1: once lr has stopped rising
  double v_floor = 0.03;              // sqrt(v) is raised to this share of its block's rms; lower: closer to the paper
};

using OneBitAdamOptions = GroupOptions<OneBitAdamSettings>;

// `parallel` must outlive it. While it lives, the reducer reads its momentum.
class OneBitAdam : public torch::optim::Optimizer {
 public:
  explicit OneBitAdam(DataParallel& parallel, OneBitAdamSettings settings = {});
  // Groups may differ in lr, betas, eps and weight_decay; the freeze is common to all (taken from `settings`).
  OneBitAdam(DataParallel& parallel, const std::vector<torch::optim::OptimizerParamGroup>& groups,
             OneBitAdamSettings settings);
  ~OneBitAdam() override;

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

  bool frozen() const;
  std::int64_t frozen_at() const;         // number of steps taken when the variance froze; -1: not yet
  double variance_ratio() const;          // the last r of the freeze test; 0: not measured yet
  std::int64_t woken_parameters() const;  // moved back to a live variance after a frozen zero got a gradient

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
