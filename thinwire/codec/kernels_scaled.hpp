// Loops over blocks of [fp32 scale][codes], for the codecs that have such. Private to the room's kernels_*.cpp.
//
// A format is a struct of static functions: code_bytes(count), the bytes that the codes of `count` elements take, and
// decode(codes, count, scale, use), which calls use(i, element i).
#pragma once

#include "thinwire/codec/block.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {

THINWIRE_INLINE std::int64_t block_length(const TileShape& shape, std::int64_t at) {
  return shape.elements - at < shape.block ? shape.elements - at : shape.block;
}

// Calls use(i, decoded element i of the tile). False when a scale is not finite or negative.
template <class Format, class Use>
THINWIRE_INLINE bool each_decoded(const TileShape& shape, const std::byte* in, Use use) {
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = block_length(shape, at);
    const float scale = from_bits(load_little<std::uint32_t>(in));
    valid &= valid_scale(scale);
    Format::decode(in + sizeof(float), count, scale, [&](std::int64_t i, float value) { use(at + i, value); });
    in += sizeof(float) + Format::code_bytes(count);
  }
  return valid;
}

template <class Format>
THINWIRE_INLINE bool decode_tile(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return each_decoded<Format>(shape, in, [=](std::int64_t i, float value) { values[i] = value; });
}

template <class Format>
THINWIRE_INLINE bool add_tile(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return each_decoded<Format>(shape, in, [=](std::int64_t i, float value) { sum[i] += value; });
}

}  // namespace thinwire::codec
