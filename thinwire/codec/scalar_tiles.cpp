// The implementation `scalar`: kernels made of the formats' block functions, and the loops around them, one element at
// a time. What every other implementation is tested against, bit for bit. Never deleted.
#include <algorithm>
#include <cmath>

#include "thinwire/codec/format.hpp"
#include "thinwire/codec/half.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

// Calls visit(first element, its span of bytes) for every block of a tile.
template <class Byte, class Visit>
void each_block(const TileShape& shape, Byte* bytes, Visit visit) {
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = std::min(shape.spec.block, shape.elements - at);
    const std::int64_t size = shape.spec.format->block_bytes(shape.spec, count);
    visit(at, count, std::span<Byte>(bytes, static_cast<std::size_t>(size)));
    bytes += size;
  }
}

bool decode(const TileShape& shape, const std::byte* in, float* values) {
  bool valid = true;
  each_block(shape, in, [&](std::int64_t at, std::int64_t count, std::span<const std::byte> bytes) {
    valid &= shape.spec.format->decode_block(shape.spec, bytes, {values + at, static_cast<std::size_t>(count)});
  });
  return valid;
}

bool add(const TileShape& shape, const std::byte* in, float* sum) {
  float values[kUnitElements];
  const bool valid = decode(shape, in, values);
  for (std::int64_t i = 0; i < shape.elements; ++i) sum[i] += values[i];
  return valid;
}

bool encode(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual) {
  bool non_finite = false;
  each_block(shape, out, [&](std::int64_t at, std::int64_t count, std::span<std::byte> bytes) {
    const BlockInput input{
        {z + at, static_cast<std::size_t>(count)}, keep == nullptr ? nullptr : keep + at, shape.seed};
    non_finite |= shape.spec.format->encode_block(shape.spec, input, bytes);
  });
  if (residual == nullptr) return non_finite;
  float sent[kUnitElements];
  decode(shape, out, sent);
  for (std::int64_t i = 0; i < shape.elements; ++i)
    residual[i] = keep == nullptr || keep[i] != 0 ? z[i] - sent[i] : 0.0F;
  return non_finite;
}

void scale_add(const float* x, float factor, const float* residual, float* z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) z[i] = factor * x[i] + residual[i];
}

void momentum_add(const MomentumTile& tile, float* z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    z[i] = (tile.beta1 * tile.momentum[i] + tile.gain * tile.gradient[i]) + tile.residual[i];
}

void mean_add(float* sum, float factor, const float* residual, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = sum[i] * factor + residual[i];
}

void multiply(float* values, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

void adam_step(const AdamTile& tile, const AdamNumbers& numbers, KeepWords keep, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (keep != nullptr && keep[i] == 0) continue;
    const float x = tile.parameter[i];
    tile.parameter[i] = x - numbers.lr * (tile.momentum[i] / (tile.sqrt_v[i] + numbers.eps) + numbers.weight_decay * x);
  }
}

void expand_mask(const std::uint64_t* mask, std::int64_t first, std::uint32_t* keep, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    keep[i] = 0U - static_cast<std::uint32_t>((mask[(first + i) / 64] >> ((first + i) % 64)) & 1U);
}

void clear_unless(KeepWords keep, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (keep[i] == 0) values[i] = 0.0F;
}

void copy_where(KeepWords keep, const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (keep[i] != 0) to[i] = from[i];
}

Sleepers look_at_sleepers(KeepWords keep, const float* values, std::int64_t count) {
  Sleepers seen{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (keep[i] != 0) continue;
    seen.non_zero |= values[i] != 0.0F;
    seen.non_finite |= !std::isfinite(values[i]);
  }
  return seen;
}

void widen_bf16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
}

void widen_fp16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_fp16(from[i]);
}

}  // namespace

const TileKernels kScalarTileKernels = {encode, decode, add};

const TileLoops kScalarTileLoops = {.scale_add = scale_add,
                                    .momentum_add = momentum_add,
                                    .mean_add = mean_add,
                                    .multiply = multiply,
                                    .adam_step = adam_step,
                                    .expand_mask = expand_mask,
                                    .clear_unless = clear_unless,
                                    .copy_where = copy_where,
                                    .look_at_sleepers = look_at_sleepers,
                                    .widen_bf16 = widen_bf16,
                                    .widen_fp16 = widen_fp16};

}  // namespace thinwire::codec
