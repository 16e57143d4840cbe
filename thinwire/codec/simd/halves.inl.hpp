// fp32 to and from bf16 and fp16, a vector at a time: half.hpp says what. Compiled once per instruction set.
// In integer arithmetic, since the conversions of the instruction sets differ in what they do with subnormals and NaN.
#if defined(THINWIRE_CODEC_SIMD_HALVES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_CODEC_SIMD_HALVES_INL_HPP
#undef THINWIRE_CODEC_SIMD_HALVES_INL_HPP
#else
#define THINWIRE_CODEC_SIMD_HALVES_INL_HPP
#endif

#include "thinwire/codec/half.hpp"
#include "thinwire/codec/simd/tile.inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

struct Bf16Lanes {
  static constexpr auto one = to_bf16;
  static constexpr auto one_wide = from_bf16;

  // In the low half of every lane.
  HWY_INLINE static VU32 narrow(VF32 value) {
    const U32 d;
    const VU32 bits = hn::BitCast(d, value);
    const VU32 magnitude = hn::And(bits, hn::Set(d, kMagnitude));
    const VU32 odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(d, 1U));
    VU32 half = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(d, 0x7FFFU)), odd));
    half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, kInfinityBits)), hn::Min(half, hn::Set(d, 0x7F7FU)), half);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinityBits)), hn::Set(d, 0x7FC0U), half);
    return hn::Or(half, hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U)));
  }
  HWY_INLINE static VF32 widen(VU32 half) { return hn::BitCast(F32(), hn::ShiftLeft<16>(half)); }
};

struct Fp16Lanes {
  static constexpr auto one = to_fp16;
  static constexpr auto one_wide = from_fp16;

  HWY_INLINE static VU32 narrow(VF32 value) {
    const U32 d;
    const VU32 bits = hn::BitCast(d, value);
    const VU32 magnitude = hn::And(bits, hn::Set(d, kMagnitude));
    const VU32 finite = hn::Min(magnitude, hn::BitCast(d, hn::Set(F32(), kLargestFp16)));
    const VU32 odd = hn::And(hn::ShiftRight<13>(finite), hn::Set(d, 1U));
    const VU32 rounded = hn::Add(hn::Add(finite, hn::Set(d, 0xFFFU)), odd);
    const VU32 normal = hn::Sub(hn::ShiftRight<13>(rounded), hn::Set(d, 112U << 10));
    const VF32 shifted = hn::Add(hn::BitCast(F32(), magnitude), hn::Set(F32(), kFp16SubnormalRound));
    const VU32 subnormal = hn::Sub(hn::BitCast(d, shifted), hn::BitCast(d, hn::Set(F32(), kFp16SubnormalRound)));
    const auto small = hn::Lt(magnitude, hn::BitCast(d, hn::Set(F32(), kSmallestNormalFp16)));
    VU32 half = hn::IfThenElse(small, subnormal, normal);
    half = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, kInfinityBits)), hn::Set(d, 0x7C00U), half);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinityBits)), hn::Set(d, 0x7E00U), half);
    return hn::Or(half, hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U)));
  }
  HWY_INLINE static VF32 widen(VU32 half) {
    const U32 d;
    const VU32 magnitude = hn::And(half, hn::Set(d, 0x7FFFU));
    const VU32 normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 112U << 23));
    const VF32 tiny = hn::Mul(hn::ConvertTo(F32(), hn::BitCast(I32(), magnitude)), hn::Set(F32(), 0x1p-24F));
    VU32 wide = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x400U)), hn::BitCast(d, tiny), normal);
    wide = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, 0x7C00U)), hn::Set(d, kInfinityBits), wide);
    wide = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7C00U)), hn::Set(d, 0x7FC00000U), wide);
    return hn::BitCast(F32(), hn::Or(wide, hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000U)))));
  }
};

// A codec of 16-bit floats without a scale.
template <class Lanes>
struct HalfTile {
  static bool encode(const TileShape& shape, const float* HWY_RESTRICT z, KeepWords, std::byte* HWY_RESTRICT out,
                     float* HWY_RESTRICT residual) {
    const std::int64_t count = shape.elements;
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) {
      const VF32 value = hn::LoadU(F32(), z + i);
      const VU32 half = Lanes::narrow(value);
      HWY_ALIGN std::uint16_t words[kWidth];
      hn::StoreU(hn::TruncateTo(U16(), half), U16(), words);
      std::memcpy(out + 2 * i, words, sizeof(words));
      if (residual != nullptr) hn::StoreU(hn::Sub(value, Lanes::widen(half)), F32(), residual + i);
    }
    for (; i < count; ++i) {
      const std::uint16_t half = Lanes::one(z[i]);
      store_little(out + 2 * i, half);
      if (residual != nullptr) residual[i] = z[i] - Lanes::one_wide(half);
    }
    return not_finite(largest_magnitude(z, count));
  }

  template <class Sink>
  HWY_INLINE static void each(const std::byte* HWY_RESTRICT in, std::int64_t count, Sink sink) {
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) {
      HWY_ALIGN std::uint16_t words[kWidth];
      std::memcpy(words, in + 2 * i, sizeof(words));
      sink.vector(i, Lanes::widen(hn::PromoteTo(U32(), hn::Load(U16(), words))));
    }
    for (; i < count; ++i) sink.one(i, Lanes::one_wide(load_little<std::uint16_t>(in + 2 * i)));
  }
  static bool decode(const TileShape& shape, const std::byte* in, float* values) {
    each(in, shape.elements, StoreSink{values});
    return true;
  }
  static bool add(const TileShape& shape, const std::byte* in, float* sum) {
    each(in, shape.elements, AddSink{sum});
    return true;
  }
  static void widen(const std::uint16_t* HWY_RESTRICT from, float* HWY_RESTRICT to, std::int64_t count) {
    each(reinterpret_cast<const std::byte*>(from), count, StoreSink{to});
  }

  static constexpr TileKernels kKernels = {encode, decode, add};
};

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // not HWY_SCALAR

#endif  // per-target guard
