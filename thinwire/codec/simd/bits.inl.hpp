// One bit per element: written from masks, read into the top bit of lanes. Compiled once per instruction set.
#if defined(THINWIRE_CODEC_SIMD_BITS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_CODEC_SIMD_BITS_INL_HPP
#undef THINWIRE_CODEC_SIMD_BITS_INL_HPP
#else
#define THINWIRE_CODEC_SIMD_BITS_INL_HPP
#endif

#include "thinwire/codec/simd/tile.inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

constexpr std::int64_t kWord = 32;  // elements whose bits are handled together
constexpr std::int64_t kWordParts = kWord / kWidth;

// Bit j % 8 of byte j / 8 is that of element j; spare bits are 0. mask(i): of kWidth elements from i on; one(i): of
// one.
template <class Mask, class One>
HWY_INLINE void write_bits(std::int64_t count, std::byte* HWY_RESTRICT out, Mask mask, One one) {
  std::int64_t i = 0;
  for (; i + kWord <= count; i += kWord) {
    std::uint32_t word = 0;
    for (std::int64_t part = 0; part < kWordParts; ++part) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(F32(), mask(i + part * kWidth), bits);
      word |= load_little<std::uint32_t>(reinterpret_cast<const std::byte*>(bits)) << (part * kWidth);
    }
    store_little(out + i / 8, word);
  }
  for (; i < count; i += 8) {
    unsigned bits = 0;
    for (std::int64_t j = 0; j < 8 && i + j < count; ++j) bits |= (one(i + j) ? 1U : 0U) << j;
    out[i / 8] = static_cast<std::byte>(bits);
  }
}

// 0x80000000 in lane l where bit part * kWidth + l of `word` is 1, else 0.
HWY_INLINE VU32 top_bits(std::uint32_t word, std::int64_t part) {
  const U32 d;
  const VU32 up = hn::Sub(hn::Set(d, static_cast<std::uint32_t>(31 - part * kWidth)), hn::Iota(d, 0));
  return hn::And(hn::Shl(hn::Set(d, word), up), hn::Set(d, 0x80000000U));
}

HWY_INLINE std::uint32_t bit_at(const std::byte* bits, std::int64_t i) {
  return (std::to_integer<std::uint32_t>(bits[i / 8]) >> (i % 8)) & 1U;
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // not HWY_SCALAR

#endif  // per-target guard
