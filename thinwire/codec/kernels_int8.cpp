// int8: [fp32 absmax][one code in -127 ... 127 per element], per block.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_absmax.hpp"
#include "thinwire/codec/kernels_scaled.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

struct Int8 {
  using Quantiser = codec::Quantiser<127>;
  static constexpr int kZeroByte = 0;

  THINWIRE_INLINE static std::int64_t code_bytes(std::int64_t count) { return count; }

  template <bool kWithResidual>
  THINWIRE_INLINE static void encode(const float* __restrict z, std::int64_t count, const Quantiser& quantiser,
                                     std::byte* __restrict codes, float* __restrict residual) {
    auto* bytes = reinterpret_cast<std::int8_t*>(codes);
    for (std::int64_t i = 0; i < count; ++i) {
      const float shifted = quantiser.shifted(z[i]);
      bytes[i] = static_cast<std::int8_t>(Quantiser::code(shifted));
      if constexpr (kWithResidual) residual[i] = z[i] - quantiser.decoded(shifted);
    }
  }

  template <class Use>
  THINWIRE_INLINE static void decode(const std::byte* __restrict codes, std::int64_t count, float absmax, Use use) {
    const auto* bytes = reinterpret_cast<const std::int8_t*>(codes);
    for (std::int64_t i = 0; i < count; ++i) use(i, absmax * (static_cast<float>(bytes[i]) * Quantiser::kStep));
  }
};

THINWIRE_VECTORISE bool encode(const TileShape& shape, const float* z, KeepWords, std::byte* out, float* residual) {
  return encode_tile<Int8>(shape, z, out, residual);
}

THINWIRE_VECTORISE bool decode(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return decode_tile<Int8>(shape, in, values);
}

THINWIRE_VECTORISE bool add(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return add_tile<Int8>(shape, in, sum);
}

}  // namespace

const TileKernels kInt8Kernels = {encode, decode, add};

}  // namespace thinwire::codec
