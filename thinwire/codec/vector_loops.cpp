// The loops around a tile's kernels, compiled once per instruction set: preparing what is encoded, and the update that
// follows a decode. What they compute is in tile.hpp.
#include "thinwire/codec/tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/vector_loops.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/halves.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace {

HWY_INLINE VF32 load(const float* from) {
  return hn::LoadU(F32(), from);
}
HWY_INLINE VU32 load_bits(const float* from) {
  return hn::BitCast(U32(), load(from));
}
HWY_INLINE void store(VF32 value, float* to) {
  hn::StoreU(value, F32(), to);
}

void scale_add(const float* HWY_RESTRICT x, float factor, const float* HWY_RESTRICT residual, float* HWY_RESTRICT z,
               std::int64_t count) {
  const VF32 scale = hn::Set(F32(), factor);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(hn::Add(hn::Mul(scale, load(x + i)), load(residual + i)), z + i);
  for (; i < count; ++i) z[i] = factor * x[i] + residual[i];
}

void momentum_add(const MomentumTile& tile, float* HWY_RESTRICT z, std::int64_t count) {
  const auto [gradient, momentum, residual, beta1, gain] = tile;
  const VF32 betas = hn::Set(F32(), beta1);
  const VF32 gains = hn::Set(F32(), gain);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const VF32 mixed = hn::Add(hn::Mul(betas, load(momentum + i)), hn::Mul(gains, load(gradient + i)));
    store(hn::Add(mixed, load(residual + i)), z + i);
  }
  for (; i < count; ++i) z[i] = (beta1 * momentum[i] + gain * gradient[i]) + residual[i];
}

void mean_add(float* HWY_RESTRICT sum, float factor, const float* HWY_RESTRICT residual, std::int64_t count) {
  const VF32 scale = hn::Set(F32(), factor);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(hn::Add(hn::Mul(load(sum + i), scale), load(residual + i)), sum + i);
  for (; i < count; ++i) sum[i] = sum[i] * factor + residual[i];
}

void multiply(float* HWY_RESTRICT values, float factor, std::int64_t count) {
  const VF32 scale = hn::Set(F32(), factor);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(hn::Mul(load(values + i), scale), values + i);
  for (; i < count; ++i) values[i] *= factor;
}

void adam_step(const AdamTile& tile, const AdamNumbers& numbers, KeepWords keep, std::int64_t count) {
  const auto [parameter, momentum, sqrt_v] = tile;
  const auto [lr, eps, weight_decay] = numbers;
  const VF32 lrs = hn::Set(F32(), lr);
  const VF32 epsilons = hn::Set(F32(), eps);
  const VF32 decays = hn::Set(F32(), weight_decay);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const VF32 x = load(parameter + i);
    const VF32 ratio = hn::Div(load(momentum + i), hn::Add(load(sqrt_v + i), epsilons));
    VF32 moved = hn::Sub(x, hn::Mul(lrs, hn::Add(ratio, hn::Mul(decays, x))));
    if (keep != nullptr) {
      const VU32 kept = hn::LoadU(U32(), keep + i);
      moved =
          hn::BitCast(F32(), hn::Or(hn::And(kept, hn::BitCast(U32(), moved)), hn::AndNot(kept, hn::BitCast(U32(), x))));
    }
    store(moved, parameter + i);
  }
  for (; i < count; ++i) {
    if (keep != nullptr && keep[i] == 0) continue;
    const float x = parameter[i];
    parameter[i] = x - lr * (momentum[i] / (sqrt_v[i] + eps) + weight_decay * x);
  }
}

void expand_mask(const std::uint64_t* mask, std::int64_t first, std::uint32_t* HWY_RESTRICT keep, std::int64_t count) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t bit = (first + i) % 64;
    const std::int64_t run = std::min(64 - bit, count - i);
    const std::uint64_t word = mask[(first + i) / 64] >> bit;
    for (std::int64_t j = 0; j < run; ++j) keep[i + j] = 0U - static_cast<std::uint32_t>((word >> j) & 1U);
    i += run;
  }
}

void clear_unless(KeepWords keep, float* HWY_RESTRICT values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = from_bits(to_bits(values[i]) & keep[i]);
}

void copy_where(KeepWords keep, const float* HWY_RESTRICT from, float* HWY_RESTRICT to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = from_bits((to_bits(from[i]) & keep[i]) | (to_bits(to[i]) & ~keep[i]));
}

Sleepers look_at_sleepers(KeepWords keep, const float* HWY_RESTRICT values, std::int64_t count) {
  std::uint32_t top = 0;
  for (std::int64_t i = 0; i < count; ++i) top = std::max(top, to_bits(values[i]) & kMagnitude & ~keep[i]);
  return {top != 0, not_finite(top)};
}

constexpr TileLoops kLoops = {.scale_add = scale_add,
                              .momentum_add = momentum_add,
                              .mean_add = mean_add,
                              .multiply = multiply,
                              .adam_step = adam_step,
                              .expand_mask = expand_mask,
                              .clear_unless = clear_unless,
                              .copy_where = copy_where,
                              .look_at_sleepers = look_at_sleepers,
                              .widen_bf16 = HalfTile<Bf16Lanes>::widen,
                              .widen_fp16 = HalfTile<Fp16Lanes>::widen};

}  // namespace

const TileLoops& vector_loops() {
  return kLoops;
}
#else
const TileLoops& vector_loops() {
  return kScalarTileLoops;
}
#endif  // not HWY_SCALAR

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "thinwire/codec/format.hpp"
#include "thinwire/codec/implementation.hpp"

namespace thinwire::codec {
namespace {
HWY_EXPORT(vector_loops);
}  // namespace

const TileKernels& tile_kernels(const Format& format) {
  return scalar_is_chosen() ? kScalarTileKernels : format.vector_kernels();
}

const TileLoops& tile_loops() {
  return scalar_is_chosen() ? kScalarTileLoops : HWY_DYNAMIC_DISPATCH(vector_loops)();
}

}  // namespace thinwire::codec
#endif  // HWY_ONCE
