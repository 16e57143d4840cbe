// fp32 to and from the two 16-bit floats, one element at a time. Private to the room.
//
// Rounding is to nearest even. Finite values stay finite: what would round to infinity becomes the largest finite
// value. Infinities stay; every NaN becomes the quiet one with its sign.
#pragma once

#include <cmath>
#include <cstdint>

#include "thinwire/codec/block.hpp"

namespace thinwire::codec {

inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7FC0U);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7F80U);
  const std::uint32_t kept = (bits >> 16) & 0x7FFFU;
  const std::uint32_t dropped = bits & 0xFFFFU;
  const bool up = dropped > 0x8000U || (dropped == 0x8000U && kept % 2 == 1);
  const std::uint32_t rounded = kept + (up ? 1 : 0);
  return static_cast<std::uint16_t>(sign | (rounded >= 0x7F80U ? 0x7F7FU : rounded));
}
inline float from_bf16(std::uint16_t half) {
  return from_bits(static_cast<std::uint32_t>(half) << 16);
}

inline constexpr float kLargestFp16 = 65504.0F;
inline constexpr float kSmallestNormalFp16 = 0x1p-14F;
// Adding this number to a magnitude below 2^-14 leaves its multiple of 2^-24 in the low bits of the sum.
inline constexpr float kFp16SubnormalRound = 0.5F;

inline std::uint16_t to_fp16(float value) {
  const std::uint32_t sign = (to_bits(value) >> 16) & 0x8000U;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < kSmallestNormalFp16) {
    return static_cast<std::uint16_t>(sign | (to_bits(magnitude + kFp16SubnormalRound) - to_bits(kFp16SubnormalRound)));
  }
  const std::uint32_t bits = to_bits(std::fmin(magnitude, kLargestFp16));
  const std::uint32_t rounded = bits + 0xFFFU + ((bits >> 13) & 1U);  // to nearest even at bit 13
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}
inline float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = (static_cast<std::uint32_t>(half) & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude > 0x7C00U) return from_bits(sign | 0x7FC00000U);
  if (magnitude == 0x7C00U) return from_bits(sign | kInfinityBits);
  if (magnitude < 0x400U) return from_bits(sign | to_bits(static_cast<float>(magnitude) * 0x1p-24F));
  return from_bits(sign | ((magnitude << 13) + (112U << 23)));
}

}  // namespace thinwire::codec
