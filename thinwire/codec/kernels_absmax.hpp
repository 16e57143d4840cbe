// What the int8 and int4 kernels share. Private to the room's kernels_*.cpp.
#pragma once

#include <cstring>

#include "thinwire/codec/block.hpp"

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

}  // namespace thinwire::codec
