// int8: [fp32 absmax][one code in -127 ... 127 per element], per block.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_absmax.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

using Int8 = Quantiser<127>;

THINWIRE_INLINE void encode_block(const float* __restrict z, std::int64_t count, const Int8& quantiser,
                                  std::byte* __restrict codes, float* __restrict residual) {
  auto* bytes = reinterpret_cast<std::int8_t*>(codes);
  if (residual == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::int8_t>(Int8::code(quantiser.shifted(z[i])));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float shifted = quantiser.shifted(z[i]);
    bytes[i] = static_cast<std::int8_t>(Int8::code(shifted));
    residual[i] = z[i] - quantiser.decoded(shifted);
  }
}

template <class Use>
THINWIRE_INLINE bool each_decoded(const TileShape& shape, const std::byte* in, Use use) {
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = shape.elements - at < shape.block ? shape.elements - at : shape.block;
    const float absmax = from_bits(load_little<std::uint32_t>(in));
    valid &= valid_scale(absmax);
    const auto* codes = reinterpret_cast<const std::int8_t*>(in + sizeof(float));
    for (std::int64_t i = 0; i < count; ++i) use(at + i, absmax * (static_cast<float>(codes[i]) * Int8::kStep));
    in += sizeof(float) + count;
  }
  return valid;
}

THINWIRE_VECTORISE bool encode(const TileShape& shape, const float* z, KeepWords, std::byte* out, float* residual) {
  bool non_finite = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = shape.elements - at < shape.block ? shape.elements - at : shape.block;
    float* block_residual = residual == nullptr ? nullptr : residual + at;
    const std::uint32_t top = largest_magnitude(z + at, count);
    if (top >= kInfinityBits) {
      non_finite = true;
      write_meaningless(z + at, count, out, static_cast<std::size_t>(count), 0, block_residual);
    } else {
      store_little(out, top);
      encode_block(z + at, count, Int8(from_bits(top)), out + sizeof(float), block_residual);
    }
    out += sizeof(float) + count;
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

const TileKernels kInt8Kernels = {encode, decode, add};

}  // namespace thinwire::codec
