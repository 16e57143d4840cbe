#include "thinwire/train/optim/update_kernels.hpp"

#include <cmath>

#include "thinwire/base/vectorise.hpp"

namespace thinwire::train {
namespace {

struct AdamWScalars {
  float factor, decay, weight1, beta2, weight2, root_correction, eps, minus_step;
};

THINWIRE_VECTORISE void adamw_loop(float* __restrict x, float* __restrict m, float* __restrict v,
                                   const float* __restrict gradient, std::int64_t count, const AdamWScalars& s) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.factor;
    const float decayed = x[i] * s.decay;
    m[i] = m[i] + s.weight1 * (g - m[i]);
    v[i] = v[i] * s.beta2 + s.weight2 * g * g;
    const float denominator = std::sqrt(v[i]) / s.root_correction + s.eps;
    x[i] = decayed + s.minus_step * m[i] / denominator;
  }
}

struct SgdScalars {
  float factor, weight_decay, momentum, minus_lr;
};

THINWIRE_VECTORISE void sgd_loop(float* __restrict x, const float* __restrict gradient, std::int64_t count,
                                 const SgdScalars& s) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.factor + s.weight_decay * x[i];
    x[i] = x[i] + s.minus_lr * g;
  }
}

THINWIRE_VECTORISE void sgd_momentum_loop(float* __restrict x, float* __restrict m, const float* __restrict gradient,
                                          std::int64_t count, const SgdScalars& s) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.factor + s.weight_decay * x[i];
    m[i] = s.momentum * m[i] + g;
    x[i] = x[i] + s.minus_lr * m[i];
  }
}

}  // namespace

void adamw_update(const AdamWState& state, const AdamWCoefficients& c) {
  const double correction1 = 1 - std::pow(c.beta1, static_cast<double>(c.step));
  const double correction2 = 1 - std::pow(c.beta2, static_cast<double>(c.step));
  const AdamWScalars scalars{.factor = c.gradient_factor,
                             .decay = static_cast<float>(1 - c.lr * c.weight_decay),
                             .weight1 = static_cast<float>(1 - c.beta1),
                             .beta2 = static_cast<float>(c.beta2),
                             .weight2 = static_cast<float>(1 - c.beta2),
                             .root_correction = static_cast<float>(std::sqrt(correction2)),
                             .eps = static_cast<float>(c.eps),
                             .minus_step = static_cast<float>(-c.lr / correction1)};
  adamw_loop(state.parameter.data(), state.momentum.data(), state.variance.data(), state.gradient.data(),
             static_cast<std::int64_t>(state.parameter.size()), scalars);
}

void sgd_update(const SgdState& state, const SgdCoefficients& c) {
  const SgdScalars scalars{.factor = c.gradient_factor,
                           .weight_decay = static_cast<float>(c.weight_decay),
                           .momentum = c.first ? 0.0F : static_cast<float>(c.momentum),
                           .minus_lr = static_cast<float>(-c.lr)};
  const auto count = static_cast<std::int64_t>(state.parameter.size());
  if (state.momentum.empty()) {
    sgd_loop(state.parameter.data(), state.gradient.data(), count, scalars);
  } else {
    sgd_momentum_loop(state.parameter.data(), state.momentum.data(), state.gradient.data(), count, scalars);
  }
}

}  // namespace thinwire::train
