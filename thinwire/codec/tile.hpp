// The kernels of a codec, which work on tiles: up to 2048 elements that begin at a block border. Private to the room.
//
// A tile fits in L1, so a loop that prepares a tile, encodes it and writes its residual passes over memory once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thinwire/codec/spec.hpp"

namespace thinwire::codec {

struct TileShape {
  std::int64_t elements;  // 1 to kUnitElements
  std::int64_t block;
  BlockScale scale;
};

// A mask as the kernels want it: all ones where the element takes part, else 0. Null: all take part.
using KeepWords = const std::uint32_t*;

struct TileKernels {
  // Writes the bytes of z and, unless `residual` is null, z - decode(bytes). Elements that do not take part must be +0
  // in z; they are not counted and get residual 0. Returns true when z holds a NaN or an infinity.
  bool (*encode)(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual);
  // values = decode(in); sum += decode(in). Both return false when a scale is not finite or negative.
  bool (*decode)(const TileShape& shape, const std::byte* in, float* values);
  bool (*add)(const TileShape& shape, const std::byte* in, float* sum);
};

extern const TileKernels kFp32Kernels;
extern const TileKernels kBf16Kernels;
extern const TileKernels kInt8Kernels;
extern const TileKernels kInt4Kernels;
extern const TileKernels kOneBitKernels;

// Loops around the kernels, the same for every codec. `count` <= kUnitElements; outputs overlap nothing.
namespace loops {

void scale_add(const float* x, float factor, const float* residual, float* z, std::int64_t count);
struct MomentumTile {
  const float* gradient;
  const float* momentum;
  const float* residual;
  float beta1;
  float gain;  // (1 - beta1) * factor
};
void momentum_add(const MomentumTile& tile, float* z, std::int64_t count);
// sum = sum * factor + residual
void mean_add(float* sum, float factor, const float* residual, std::int64_t count);
void multiply(float* values, float factor, std::int64_t count);
struct AdamTile {
  float* parameter;
  const float* momentum;
  const float* sqrt_v;
};
struct AdamNumbers {
  float lr;
  float eps;
  float weight_decay;
};
void adam_step(const AdamTile& tile, const AdamNumbers& numbers, KeepWords keep, std::int64_t count);
// Bits first ... first + count - 1 of `mask` as words of all ones or 0.
void expand_mask(const std::uint64_t* mask, std::int64_t first, std::uint32_t* keep, std::int64_t count);
void clear_unless(KeepWords keep, float* values, std::int64_t count);  // +0 where keep is 0
void copy_where(KeepWords keep, const float* from, float* to, std::int64_t count);
struct Sleepers {
  bool non_zero;  // an element that does not take part is not +-0
  bool non_finite;
};
Sleepers look_at_sleepers(KeepWords keep, const float* values, std::int64_t count);

}  // namespace loops
}  // namespace thinwire::codec
