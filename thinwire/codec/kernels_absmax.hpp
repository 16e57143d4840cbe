// What the int8 and int4 kernels share. Private to the room's kernels_*.cpp.
//
// Their formats (kernels_scaled.hpp) also have a Quantiser, kZeroByte (codes of zeros) and
// encode<kWithResidual>(z, count, quantiser, codes, residual).
#pragma once

#include <cstring>

#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_scaled.hpp"

namespace thinwire::codec {

// Bits of the largest |z|: integers order as magnitudes do, and NaN above all. The order of the search changes nothing.
THINWIRE_INLINE std::uint32_t largest_magnitude(const float* __restrict z, std::int64_t count) {
  std::int32_t top = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(to_bits(z[i]) & kMagnitude);
    top = magnitude > top ? magnitude : top;
  }
  return static_cast<std::uint32_t>(top);
}

// A block with a NaN or an infinity: it decodes to zeros and its residual keeps all of z.
THINWIRE_INLINE void write_meaningless(const float* z, std::int64_t count, std::byte* out, std::size_t code_bytes,
                                       int zero_code, float* residual) {
  store_little(out, std::uint32_t{0});
  std::memset(out + sizeof(float), zero_code, code_bytes);
  if (residual != nullptr) std::memcpy(residual, z, static_cast<std::size_t>(count) * sizeof(float));
}

template <class Format>
THINWIRE_INLINE bool encode_tile(const TileShape& shape, const float* z, std::byte* out, float* residual) {
  bool non_finite = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = block_length(shape, at);
    const std::int64_t code_bytes = Format::code_bytes(count);
    float* block_residual = residual == nullptr ? nullptr : residual + at;
    const std::uint32_t top = largest_magnitude(z + at, count);
    if (top >= kInfinityBits) {
      non_finite = true;
      write_meaningless(z + at, count, out, static_cast<std::size_t>(code_bytes), Format::kZeroByte, block_residual);
    } else {
      store_little(out, top);
      const typename Format::Quantiser quantiser(from_bits(top));
      if (residual == nullptr) {
        Format::template encode<false>(z + at, count, quantiser, out + sizeof(float), nullptr);
      } else {
        Format::template encode<true>(z + at, count, quantiser, out + sizeof(float), block_residual);
      }
    }
    out += sizeof(float) + code_bytes;
  }
  return non_finite;
}

}  // namespace thinwire::codec
