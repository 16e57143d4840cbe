// fp32 and bf16: no scale, so a block is one element and a tile is one loop. Little endian.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_absmax.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

struct Fp32 {
  using Word = std::uint32_t;
  THINWIRE_INLINE static Word code(float value) { return to_bits(value); }
  THINWIRE_INLINE static float value(Word word) { return from_bits(word); }
};

struct Bf16 {
  using Word = std::uint16_t;
  THINWIRE_INLINE static Word code(float value) { return to_bf16(value); }
  THINWIRE_INLINE static float value(Word word) { return from_bf16(word); }
};

template <class Format>
THINWIRE_INLINE bool encode_tile(std::int64_t count, const float* __restrict z, std::byte* __restrict out,
                                 float* __restrict residual) {
  using Word = typename Format::Word;
  for (std::int64_t i = 0; i < count; ++i) store_little(out + i * sizeof(Word), Format::code(z[i]));
  if (residual != nullptr)
    for (std::int64_t i = 0; i < count; ++i) residual[i] = z[i] - Format::value(Format::code(z[i]));
  return largest_magnitude(z, count) >= kInfinityBits;
}

template <class Format, class Use>
THINWIRE_INLINE bool each_decoded(std::int64_t count, const std::byte* __restrict in, Use use) {
  using Word = typename Format::Word;
  for (std::int64_t i = 0; i < count; ++i) use(i, Format::value(load_little<Word>(in + i * sizeof(Word))));
  return true;
}

THINWIRE_VECTORISE bool encode_fp32(const TileShape& shape, const float* z, KeepWords, std::byte* out,
                                    float* residual) {
  return encode_tile<Fp32>(shape.elements, z, out, residual);
}
THINWIRE_VECTORISE bool encode_bf16(const TileShape& shape, const float* z, KeepWords, std::byte* out,
                                    float* residual) {
  return encode_tile<Bf16>(shape.elements, z, out, residual);
}
THINWIRE_VECTORISE bool decode_fp32(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return each_decoded<Fp32>(shape.elements, in, [=](std::int64_t i, float value) { values[i] = value; });
}
THINWIRE_VECTORISE bool decode_bf16(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return each_decoded<Bf16>(shape.elements, in, [=](std::int64_t i, float value) { values[i] = value; });
}
THINWIRE_VECTORISE bool add_fp32(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return each_decoded<Fp32>(shape.elements, in, [=](std::int64_t i, float value) { sum[i] += value; });
}
THINWIRE_VECTORISE bool add_bf16(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return each_decoded<Bf16>(shape.elements, in, [=](std::int64_t i, float value) { sum[i] += value; });
}

}  // namespace

const TileKernels kFp32Kernels = {encode_fp32, decode_fp32, add_fp32};
const TileKernels kBf16Kernels = {encode_bf16, decode_bf16, add_bf16};

}  // namespace thinwire::codec
