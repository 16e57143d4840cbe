// What the vector kernels of several codecs share. Compiled once per instruction set: include it after
// hwy/foreach_target.hpp and hwy/highway.h only.
#if defined(THINWIRE_CODEC_SIMD_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_CODEC_SIMD_TILE_INL_HPP
#undef THINWIRE_CODEC_SIMD_TILE_INL_HPP
#else
#define THINWIRE_CODEC_SIMD_TILE_INL_HPP
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/tile.hpp"

// HWY_SCALAR, the fallback of machines without any of our instruction sets, takes the scalar kernels.
#undef THINWIRE_VECTOR_KERNELS
#if HWY_TARGET == HWY_SCALAR
#define THINWIRE_VECTOR_KERNELS(kernels) kScalarTileKernels
#else
#define THINWIRE_VECTOR_KERNELS(kernels) kernels

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::ScalableTag<std::int32_t>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using VF32 = hn::Vec<F32>;
using VU32 = hn::Vec<U32>;

// Lanes of a vector of floats; a constant, since instruction sets without fixed vectors are left out.
constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(F32()));

HWY_INLINE std::uint8_t* as_u8(std::byte* bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes);
}
HWY_INLINE const std::uint8_t* as_u8(const std::byte* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}

// True when some |z| is infinite or NaN, given the largest magnitude as an integer.
HWY_INLINE bool not_finite(std::uint32_t largest) {
  return largest >= kInfinityBits;
}

// Bits of the largest |z|: integers order as magnitudes do, and NaN above all. The order of the search changes nothing.
HWY_INLINE std::uint32_t largest_magnitude(const float* HWY_RESTRICT z, std::int64_t count) {
  const I32 d;
  const auto mask = hn::Set(d, static_cast<std::int32_t>(kMagnitude));
  auto top = hn::Zero(d);
  auto other = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= count; i += 2 * kWidth) {
    top = hn::Max(top, hn::And(hn::BitCast(d, hn::LoadU(F32(), z + i)), mask));
    other = hn::Max(other, hn::And(hn::BitCast(d, hn::LoadU(F32(), z + i + kWidth)), mask));
  }
  auto largest = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d, hn::Max(top, other))));
  for (; i < count; ++i) largest = std::max(largest, to_bits(z[i]) & kMagnitude);
  return largest;
}

// Where decoded values go: vectors of kWidth that begin at i, or one element.
struct StoreSink {
  float* HWY_RESTRICT values;
  HWY_INLINE void vector(std::int64_t i, VF32 value) const { hn::StoreU(value, F32(), values + i); }
  HWY_INLINE void one(std::int64_t i, float value) const { values[i] = value; }
  HWY_INLINE StoreSink from(std::int64_t i) const { return {values + i}; }
};
struct AddSink {
  float* HWY_RESTRICT sum;
  HWY_INLINE void vector(std::int64_t i, VF32 value) const {
    hn::StoreU(hn::Add(hn::LoadU(F32(), sum + i), value), F32(), sum + i);
  }
  HWY_INLINE void one(std::int64_t i, float value) const { sum[i] += value; }
  HWY_INLINE AddSink from(std::int64_t i) const { return {sum + i}; }
};

HWY_INLINE std::int64_t block_length(const TileShape& shape, std::int64_t at) {
  return std::min(shape.elements - at, shape.spec.block);
}

// Decodes blocks of [fp32 scale][codes]. Codes::decode(codes, count, scale, sink) does one; Codes::code_bytes(count).
template <class Codes, class Sink>
HWY_INLINE bool decode_scaled(const TileShape& shape, const std::byte* in, Sink sink) {
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    const float scale = from_bits(load_little<std::uint32_t>(in));
    valid &= valid_scale(scale);
    Codes::decode(in + kScaleBytes, count, scale, sink.from(at));
    in += kScaleBytes + Codes::code_bytes(count);
  }
  return valid;
}

template <class Codes>
bool decode_scaled_tile(const TileShape& shape, const std::byte* in, float* values) {
  return decode_scaled<Codes>(shape, in, StoreSink{values});
}
template <class Codes>
bool add_scaled_tile(const TileShape& shape, const std::byte* in, float* sum) {
  return decode_scaled<Codes>(shape, in, AddSink{sum});
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // not HWY_SCALAR

#endif  // per-target guard
