// int4: [fp32 absmax][two codes per byte], per block of n elements with half = ceil(n / 2): byte j holds element j in
// its low nibble and element half + j in its high one, each as q + 8, q in -7 ... 7. In an odd block the last byte's
// high nibble is 8. Two halves instead of neighbours: both are read and written in order.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_absmax.hpp"
#include "thinwire/codec/kernels_scaled.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

struct Int4 {
  using Quantiser = codec::Quantiser<7>;
  static constexpr int kZero = 8;
  static constexpr int kZeroByte = kZero | (kZero << 4);

  THINWIRE_INLINE static std::int64_t code_bytes(std::int64_t count) { return (count + 1) / 2; }

  template <bool kWithResidual>
  THINWIRE_INLINE static void encode(const float* __restrict z, std::int64_t count, const Quantiser& quantiser,
                                     std::byte* __restrict codes, float* __restrict residual) {
    const std::int64_t half = (count + 1) / 2;
    const std::int64_t pairs = count / 2;
    auto* bytes = reinterpret_cast<std::uint8_t*>(codes);
    for (std::int64_t j = 0; j < pairs; ++j) {
      const float low = quantiser.shifted(z[j]);
      const float high = quantiser.shifted(z[half + j]);
      bytes[j] = static_cast<std::uint8_t>((Quantiser::code(low) + kZero) | ((Quantiser::code(high) + kZero) << 4));
      if constexpr (kWithResidual) {
        residual[j] = z[j] - quantiser.decoded(low);
        residual[half + j] = z[half + j] - quantiser.decoded(high);
      }
    }
    if (pairs == half) return;
    const float last = quantiser.shifted(z[pairs]);
    bytes[pairs] = static_cast<std::uint8_t>((Quantiser::code(last) + kZero) | (kZero << 4));
    if constexpr (kWithResidual) residual[pairs] = z[pairs] - quantiser.decoded(last);
  }

  THINWIRE_INLINE static float value_of(int nibble, float absmax) {
    return absmax * (static_cast<float>(nibble - kZero) * Quantiser::kStep);
  }

  template <class Use>
  THINWIRE_INLINE static void decode(const std::byte* __restrict codes, std::int64_t count, float absmax, Use use) {
    const std::int64_t half = (count + 1) / 2;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes);
    for (std::int64_t j = 0; j < half; ++j) use(j, value_of(bytes[j] & 15, absmax));
    for (std::int64_t j = 0; j < count - half; ++j) use(half + j, value_of(bytes[j] >> 4, absmax));
  }
};

THINWIRE_VECTORISE bool encode(const TileShape& shape, const float* z, KeepWords, std::byte* out, float* residual) {
  return encode_tile<Int4>(shape, z, out, residual);
}

THINWIRE_VECTORISE bool decode(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return decode_tile<Int4>(shape, in, values);
}

THINWIRE_VECTORISE bool add(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return add_tile<Int4>(shape, in, sum);
}

}  // namespace

const TileKernels kInt4Kernels = {encode, decode, add};

}  // namespace thinwire::codec
