// The update loops, one pass over memory each. Arithmetic and order of operations are torch.optim's (non-fused, CPU),
// so that dense training here and there differ by rounding of the gradient sum only. Any thread; spans must not
// overlap.
#pragma once

#include <cstdint>
#include <span>

namespace thinwire::train {

struct AdamWCoefficients {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  std::int64_t step = 1;      // of this parameter, this one included
  float gradient_factor = 1;  // clipping
};

struct AdamWState {
  std::span<float> parameter;
  std::span<float> momentum;
  std::span<float> variance;
  std::span<const float> gradient;
};

void adamw_update(const AdamWState& state, const AdamWCoefficients& coefficients);

struct SgdCoefficients {
  double lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool first = true;  // the momentum buffer starts as the first gradient
  float gradient_factor = 1;
};

struct SgdState {
  std::span<float> parameter;
  std::span<float> momentum;  // empty when there is none
  std::span<const float> gradient;
};

void sgd_update(const SgdState& state, const SgdCoefficients& coefficients);

}  // namespace thinwire::train
