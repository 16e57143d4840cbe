// Kernels work on tiles: up to 2048 elements that begin at a block border. Private to the room.
//
// A tile fits in L1, so a loop that prepares a tile, encodes it and writes its residual passes over memory once.
// Every table here exists once per implementation (implementation.hpp): scalar, and one per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thinwire/codec/spec.hpp"

namespace thinwire::codec {

struct TileShape {
  const Spec& spec;
  std::int64_t elements;  // 1 to kUnitElements
  std::uint64_t seed = 0;
};

// A mask as the kernels want it: all ones where the element takes part, else 0. Null: all take part.
using KeepWords = const std::uint32_t*;

struct TileKernels {
  // Writes the bytes of z and, unless `residual` is null, z - decode(bytes). Elements that do not take part must be +0
  // in z; they are not counted and get residual 0. Returns true when z holds a NaN or an infinity.
  bool (*encode)(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual);
  // values = decode(in); sum += decode(in). Both return false when the bytes cannot have been written by encode.
  bool (*decode)(const TileShape& shape, const std::byte* in, float* values);
  bool (*add)(const TileShape& shape, const std::byte* in, float* sum);
};

// Made of a format's block functions; the same for all formats.
extern const TileKernels kScalarTileKernels;

struct MomentumTile {
  const float* gradient;
  const float* momentum;
  const float* residual;
  float beta1;
  float gain;  // (1 - beta1) * factor
};
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
struct Sleepers {
  bool non_zero;  // an element that does not take part is not +-0
  bool non_finite;
};

// Loops around the kernels, the same for every codec. `count` <= kUnitElements; outputs overlap nothing but where said.
struct TileLoops {
  // z = factor * x + residual
  void (*scale_add)(const float* x, float factor, const float* residual, float* z, std::int64_t count);
  // z = (beta1 * momentum + gain * gradient) + residual
  void (*momentum_add)(const MomentumTile& tile, float* z, std::int64_t count);
  // sum = sum * factor + residual
  void (*mean_add)(float* sum, float factor, const float* residual, std::int64_t count);
  void (*multiply)(float* values, float factor, std::int64_t count);
  void (*adam_step)(const AdamTile& tile, const AdamNumbers& numbers, KeepWords keep, std::int64_t count);
  // Bits first ... first + count - 1 of `mask` as words of all ones or 0.
  void (*expand_mask)(const std::uint64_t* mask, std::int64_t first, std::uint32_t* keep, std::int64_t count);
  void (*clear_unless)(KeepWords keep, float* values, std::int64_t count);  // +0 where keep is 0
  void (*copy_where)(KeepWords keep, const float* from, float* to, std::int64_t count);
  Sleepers (*look_at_sleepers)(KeepWords keep, const float* values, std::int64_t count);
  // Exactly; a NaN stays a NaN.
  void (*widen_bf16)(const std::uint16_t* from, float* to, std::int64_t count);
  void (*widen_fp16)(const std::uint16_t* from, float* to, std::int64_t count);
};

extern const TileLoops kScalarTileLoops;

// Of the implementation that is chosen now.
const TileKernels& tile_kernels(const Format& format);
const TileLoops& tile_loops();

}  // namespace thinwire::codec
