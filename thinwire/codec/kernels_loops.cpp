// The loops around a tile's kernels: preparing what is encoded, and the update that follows a decode.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec::loops {

THINWIRE_VECTORISE void scale_add(const float* __restrict x, float factor, const float* __restrict residual,
                                  float* __restrict z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) z[i] = factor * x[i] + residual[i];
}

THINWIRE_VECTORISE void momentum_add(const MomentumTile& tile, float* __restrict z, std::int64_t count) {
  const float* __restrict gradient = tile.gradient;
  const float* __restrict momentum = tile.momentum;
  const float* __restrict residual = tile.residual;
  const float beta1 = tile.beta1;
  const float gain = tile.gain;
  for (std::int64_t i = 0; i < count; ++i) z[i] = (beta1 * momentum[i] + gain * gradient[i]) + residual[i];
}

THINWIRE_VECTORISE void mean_add(float* __restrict sum, float factor, const float* __restrict residual,
                                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = sum[i] * factor + residual[i];
}

THINWIRE_VECTORISE void multiply(float* __restrict values, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

THINWIRE_VECTORISE void adam_step(const AdamTile& tile, const AdamNumbers& numbers, KeepWords keep,
                                  std::int64_t count) {
  float* __restrict parameter = tile.parameter;
  const float* __restrict momentum = tile.momentum;
  const float* __restrict sqrt_v = tile.sqrt_v;
  const auto [lr, eps, weight_decay] = numbers;
  if (keep == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = parameter[i];
      parameter[i] = x - lr * (momentum[i] / (sqrt_v[i] + eps) + weight_decay * x);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = parameter[i];
    const float moved = x - lr * (momentum[i] / (sqrt_v[i] + eps) + weight_decay * x);
    parameter[i] = from_bits((to_bits(moved) & keep[i]) | (to_bits(x) & ~keep[i]));
  }
}

THINWIRE_VECTORISE void expand_mask(const std::uint64_t* mask, std::int64_t first, std::uint32_t* __restrict keep,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t bit = (first + i) % 64;
    const std::int64_t run = 64 - bit < count - i ? 64 - bit : count - i;
    const std::uint64_t word = mask[(first + i) / 64] >> bit;
    for (std::int64_t j = 0; j < run; ++j) keep[i + j] = 0U - static_cast<std::uint32_t>((word >> j) & 1U);
    i += run;
  }
}

THINWIRE_VECTORISE void clear_unless(KeepWords keep, float* __restrict values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = from_bits(to_bits(values[i]) & keep[i]);
}

THINWIRE_VECTORISE void copy_where(KeepWords keep, const float* __restrict from, float* __restrict to,
                                   std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = from_bits((to_bits(from[i]) & keep[i]) | (to_bits(to[i]) & ~keep[i]));
}

THINWIRE_VECTORISE Sleepers look_at_sleepers(KeepWords keep, const float* __restrict values, std::int64_t count) {
  std::int32_t top = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(to_bits(values[i]) & kMagnitude & ~keep[i]);
    top = magnitude > top ? magnitude : top;
  }
  return {top != 0, static_cast<std::uint32_t>(top) >= kInfinityBits};
}

}  // namespace thinwire::codec::loops
