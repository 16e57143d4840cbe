// one_bit: [fp32 scale][one bit per element, set where it is negative], per block.
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/kernels_scaled.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {
namespace {

template <BlockScale kScale>
THINWIRE_INLINE double term(float value) {
  const double wide = value;
  return kScale == BlockScale::kRms ? wide * wide : std::fabs(wide);
}

template <BlockScale kScale>
THINWIRE_INLINE double canonical_sum(const float* __restrict z, std::int64_t count) {
  double lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += term<kScale>(z[i + l]);
  for (int l = 0; i + l < count; ++l) lane[l] += term<kScale>(z[i + l]);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

THINWIRE_INLINE void pack_signs(const float* __restrict z, std::int64_t count, std::byte* __restrict out) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    std::uint32_t bits = 0;
    for (int j = 0; j < 32; ++j) bits |= (z[i + j] < 0.0F ? 1U : 0U) << j;
    store_little(out + i / 8, bits);
  }
  for (; i < count; i += 8) {
    unsigned bits = 0;
    for (std::int64_t j = 0; j < 8 && i + j < count; ++j) bits |= (z[i + j] < 0.0F ? 1U : 0U) << j;
    out[i / 8] = static_cast<std::byte>(bits);
  }
}

struct OneBit {
  THINWIRE_INLINE static std::int64_t code_bytes(std::int64_t count) { return (count + 7) / 8; }

  // In a form that vectorises.
  template <class Use>
  THINWIRE_INLINE static void decode(const std::byte* __restrict in, std::int64_t count, float scale, Use use) {
    const std::uint32_t scale_bits = to_bits(scale);
    std::int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const std::uint32_t bits = load_little<std::uint32_t>(in + i / 8);
      for (int j = 0; j < 32; ++j) use(i + j, from_bits(scale_bits ^ ((bits >> j) << 31)));
    }
    for (; i < count; ++i) {
      const std::uint32_t bits = std::to_integer<std::uint32_t>(in[i / 8]);
      use(i, from_bits(scale_bits ^ ((bits >> (i % 8)) << 31)));
    }
  }
};

THINWIRE_INLINE std::int64_t taking_part(KeepWords keep, std::int64_t count) {
  if (keep == nullptr) return count;
  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += keep[i] & 1U;
  return total;
}

template <BlockScale kScale>
THINWIRE_INLINE bool encode_block(const float* __restrict z, KeepWords keep, std::int64_t count,
                                  std::byte* __restrict out, float* __restrict residual) {
  const double sum = canonical_sum<kScale>(z, count);
  const bool non_finite = !std::isfinite(sum);
  const float scale = non_finite ? 0.0F : one_bit_scale(kScale, sum, taking_part(keep, count));
  store_little(out, to_bits(scale));
  pack_signs(z, count, out + sizeof(float));
  if (residual == nullptr) return non_finite;
  for (std::int64_t i = 0; i < count; ++i) residual[i] = z[i] - (z[i] < 0.0F ? -scale : scale);
  if (keep != nullptr)
    for (std::int64_t i = 0; i < count; ++i) residual[i] = from_bits(to_bits(residual[i]) & keep[i]);
  return non_finite;
}

template <BlockScale kScale>
THINWIRE_INLINE bool encode_tile(const TileShape& shape, const float* z, KeepWords keep, std::byte* out,
                                 float* residual) {
  bool non_finite = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.block) {
    const std::int64_t count = block_length(shape, at);
    non_finite |= encode_block<kScale>(z + at, keep == nullptr ? nullptr : keep + at, count, out,
                                       residual == nullptr ? nullptr : residual + at);
    out += sizeof(float) + OneBit::code_bytes(count);
  }
  return non_finite;
}

THINWIRE_VECTORISE bool encode(const TileShape& shape, const float* z, KeepWords keep, std::byte* out,
                               float* residual) {
  return shape.scale == BlockScale::kRms ? encode_tile<BlockScale::kRms>(shape, z, keep, out, residual)
                                         : encode_tile<BlockScale::kMeanAbs>(shape, z, keep, out, residual);
}

THINWIRE_VECTORISE bool decode(const TileShape& shape, const std::byte* in, float* __restrict values) {
  return decode_tile<OneBit>(shape, in, values);
}

THINWIRE_VECTORISE bool add(const TileShape& shape, const std::byte* in, float* __restrict sum) {
  return add_tile<OneBit>(shape, in, sum);
}

}  // namespace

const TileKernels kOneBitKernels = {encode, decode, add};

}  // namespace thinwire::codec
