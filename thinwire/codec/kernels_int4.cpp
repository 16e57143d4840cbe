// int4: [fp32 absmax][two codes per byte], per block of n elements with half = ceil(n / 2): byte j holds element j in
// its low nibble and element half + j in its high one, each as q + 8, q in -7 ... 7. In an odd block the last byte's
// high nibble is 8. Two halves instead of neighbours: both are read and written in order.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_absmax.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

using Int4 = Quantiser<7>;
constexpr int kZero = 8;

template <bool kWithResidual>
THINWIRE_INLINE void encode_block(const float* __restrict z, std::int64_t count, const Int4& quantiser,
                                  std::byte* __restrict codes, float* __restrict residual) {
  const std::int64_t half = (count + 1) / 2;
  const std::int64_t pairs = count / 2;
  auto* bytes = reinterpret_cast<std::uint8_t*>(codes);
  for (std::int64_t j = 0; j < pairs; ++j) {
    const float low = quantiser.shifted(z[j]);
    const float high = quantiser.shifted(z[half + j]);
    bytes[j] = static_cast<std::uint8_t>((Int4::code(low) + kZero) | ((Int4::code(high) + kZero) << 4));
    if constexpr (kWithResidual) {
      residual[j] = z[j] - quantiser.decoded(low);
      residual[half + j] = z[half + j] - quantiser.decoded(high);
    }
  }
  if (pairs == half) return;
  const float last = quantiser.shifted(z[pairs]);
  bytes[pairs] = static_cast<std::uint8_t>((Int4::code(last) + kZero) | (kZero << 4));
  if constexpr (kWithResidual) residual[pairs] = z[pairs] - quantiser.decoded(last);
}

THINWIRE_INLINE float value_of(int nibble, float absmax) {
  return absmax * (static_cast<float>(nibble - kZero) * Int4::kStep);
}

template <class Use>
THINWIRE_INLINE void decode_block(const std::byte* __restrict codes, std::int64_t count, float absmax, Use use) {
  const std::int64_t half = (count + 1) / 2;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes);
  for (std::int64_t j = 0; j < half; ++j) use(j, value_of(bytes[j] & 15, absmax));
  for (std::int64_t j = 0; j < count - half; ++j) use(half + j, value_of(bytes[j] >> 4, absmax));
}

template <class Use>
THINWIRE_INLINE bool each_decoded(const TileShape& shape, const std::byte* in, Use use) {
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = shape.elements - at < shape.block ? shape.elements - at : shape.block;
    const float absmax = from_bits(load_little<std::uint32_t>(in));
    valid &= valid_scale(absmax);
    decode_block(in + sizeof(float), count, absmax, [&](std::int64_t i, float value) { use(at + i, value); });
    in += sizeof(float) + (count + 1) / 2;
  }
  return valid;
}

THINWIRE_VECTORISE bool encode(const TileShape& shape, const float* z, KeepWords, std::byte* out, float* residual) {
  bool non_finite = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = shape.elements - at < shape.block ? shape.elements - at : shape.block;
    const std::int64_t code_bytes = (count + 1) / 2;
    const std::uint32_t top = largest_magnitude(z + at, count);
    if (top >= kInfinityBits) {
      non_finite = true;
      write_meaningless(z + at, count, out, static_cast<std::size_t>(code_bytes), kZero | (kZero << 4),
                        residual == nullptr ? nullptr : residual + at);
    } else {
      store_little(out, top);
      const Int4 quantiser(from_bits(top));
      if (residual == nullptr) {
        encode_block<false>(z + at, count, quantiser, out + sizeof(float), nullptr);
      } else {
        encode_block<true>(z + at, count, quantiser, out + sizeof(float), residual + at);
      }
    }
    out += sizeof(float) + code_bytes;
  }
  return non_finite;
}

THINWIRE_VECTORISE bool decode(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return each_decoded(shape, in, [=](std::int64_t i, float value) { values[i] = value; });
}

THINWIRE_VECTORISE bool add(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return each_decoded(shape, in, [=](std::int64_t i, float value) { sum[i] += value; });
}

}  // namespace

const TileKernels kInt4Kernels = {encode, decode, add};

}  // namespace thinwire::codec
