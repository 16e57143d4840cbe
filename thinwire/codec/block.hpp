// The arithmetic that every implementation of a block must share bit for bit. Private to the room; formats.md explains.
//
// Canonical sum of a block (one_bit's scale): 16 double lanes, lane l adds the terms of elements l, l+16, l+32, ... in
// that order from +0; then lane l += lane l+8 for l < 8, then +4, +2, +1. Doubles, since squares of floats neither
// overflow nor vanish in them: the scale of 2^k * x is 2^k times the scale of x for every k that keeps both normal.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "thinwire/base/vectorise.hpp"
#include "thinwire/codec/spec.hpp"

namespace thinwire::codec {

inline constexpr int kLanes = 16;
inline constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;     // all but the sign of a float
inline constexpr std::uint32_t kInfinityBits = 0x7F800000U;  // magnitudes from here on are not finite

THINWIRE_INLINE std::uint32_t to_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
THINWIRE_INLINE float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

template <class Word>
THINWIRE_INLINE Word little(Word word) {
  if constexpr (std::endian::native == std::endian::big) {
    return sizeof(Word) == 2 ? static_cast<Word>(__builtin_bswap16(static_cast<std::uint16_t>(word)))
                             : static_cast<Word>(__builtin_bswap32(static_cast<std::uint32_t>(word)));
  }
  return word;
}

template <class Word>
THINWIRE_INLINE Word load_little(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return little(word);
}

template <class Word>
THINWIRE_INLINE void store_little(std::byte* to, Word word) {
  word = little(word);
  std::memcpy(to, &word, sizeof(word));
}

// A scale that an encoder can have written: finite and not negative.
THINWIRE_INLINE bool valid_scale(float scale) {
  return to_bits(scale) < kInfinityBits;
}

// one_bit: the scale of `count` elements whose squares or magnitudes sum up to `sum`.
THINWIRE_INLINE float one_bit_scale(BlockScale kind, double sum, std::int64_t count) {
  if (count == 0) return 0.0F;
  const double mean = sum / static_cast<double>(count);
  return static_cast<float>(kind == BlockScale::kRms ? std::sqrt(mean) : mean);
}

// int8, int4: q = round_half_even((x * pre) * gain), |q| <= kLevels; decoded as absmax * (q * kStep).
// kStep is 1 / kLevels rounded, for which kLevels * kStep is exactly 1: +-absmax are exact.
template <int kLevels>
struct Quantiser {
  static constexpr float kStep = 1.0F / static_cast<float>(kLevels);
  static_assert(static_cast<float>(kLevels) * kStep == 1.0F);
  // Adding this number leaves round_half_even(v) in the low bits of the sum, for |v| < 2^22.
  static constexpr float kRound = 12582912.0F;

  float absmax;
  float pre;  // lifts blocks of tiny values, whose gain would overflow
  float gain;

  THINWIRE_INLINE explicit Quantiser(float block_absmax) : absmax(block_absmax) {
    pre = absmax < 0x1p-60F ? 0x1p64F : 1.0F;
    gain = absmax > 0.0F ? static_cast<float>(kLevels) / (absmax * pre) : 0.0F;
  }
  THINWIRE_INLINE float shifted(float value) const { return (value * pre) * gain + kRound; }
  THINWIRE_INLINE static int code(float shifted_value) {
    return static_cast<int>(to_bits(shifted_value)) - static_cast<int>(0x4B400000U);
  }
  THINWIRE_INLINE float decoded(float shifted_value) const { return absmax * ((shifted_value - kRound) * kStep); }
};

// bf16: to nearest even; finite values stay finite; a NaN stays a (quiet) NaN.
THINWIRE_INLINE std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t magnitude = bits & kMagnitude;
  std::uint32_t rounded = (magnitude + 0x7FFFU + ((magnitude >> 16) & 1U)) >> 16;
  rounded = magnitude < kInfinityBits && rounded >= 0x7F80U ? 0x7F7FU : rounded;
  rounded = magnitude > kInfinityBits ? 0x7FC0U : rounded;
  return static_cast<std::uint16_t>(rounded | ((bits >> 16) & 0x8000U));
}
THINWIRE_INLINE float from_bf16(std::uint16_t half) {
  return from_bits(static_cast<std::uint32_t>(half) << 16);
}

}  // namespace thinwire::codec
