// What bf16 and fp16 share: two bytes per element, little endian, no scale. `kTo` and `kFrom` convert one element.
#pragma once

#include "thinwire/codec/format.hpp"
#include "thinwire/codec/half.hpp"

namespace thinwire::codec {

template <std::uint16_t (*kTo)(float), float (*kFrom)(std::uint16_t)>
struct Halves {
  static std::int64_t block_bytes(const Spec&, std::int64_t elements) { return 2 * elements; }

  static bool encode_block(const Spec&, const BlockInput& input, std::span<std::byte> out) {
    for (std::size_t i = 0; i < input.z.size(); ++i) store_little(out.data() + 2 * i, kTo(input.z[i]));
    return any_non_finite(input.z);
  }

  static bool decode_block(const Spec&, std::span<const std::byte> in, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = kFrom(load_little<std::uint16_t>(in.data() + 2 * i));
    return true;
  }
};

}  // namespace thinwire::codec
