// What int8, int4 and int2 share: [fp32 absmax][codes], per block of n elements.
//
// A byte holds kParts = 8 / bits codes. With run = ceil(n / kParts), byte j holds the codes of elements j, run + j,
// 2 * run + j ..., from its lowest bits up: every part is read and written in order by vector instructions. Places that
// no element fills hold the code of zero. A code is q in two's complement (int8) or q + 2^(bits - 1) (int4, int2: 0 is
// never written), with q in -kLevels ... kLevels.
//
// q = round((x * pre) * gain), pre = 2^64 if absmax < 2^-60 else 1 (the quotient would overflow), gain = kLevels /
// (absmax * pre); decoded = absmax * (q * (1 / kLevels)), for which kLevels * (1 / kLevels) is exactly 1: +-absmax come
// back exactly. Rounding is to nearest even, or stochastic: q = round((x * pre) * gain + u) with u = (k + 1/2) / 65536
// - 1/2 and k the upper 16 bits of hash32(key + i), where i is the element's place in its block and key = hash32(low
// half of the seed ^ fraction bits of absmax, so that 2^k * x draws as x does) ^ high half of the seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "thinwire/base/hash32.hpp"
#include "thinwire/codec/block.hpp"
#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

inline constexpr std::string_view kRoundings[] = {"nearest", "stochastic"};
inline constexpr OptionRule kPackedOptions[] = {block_rule(128), {.key = "rounding", .choices = kRoundings}};
inline constexpr std::size_t kRoundingOption = 1;

template <int kBits>
struct PackedInts {
  static constexpr int kParts = 8 / kBits;
  static constexpr int kLevels = (1 << (kBits - 1)) - 1;
  static constexpr int kOffset = kBits == 8 ? 0 : 1 << (kBits - 1);
  static constexpr int kCodeMask = (1 << kBits) - 1;
  static constexpr int kZeroByte = kOffset * (255 / kCodeMask);
  static constexpr float kStep = 1.0F / static_cast<float>(kLevels);
  static_assert(static_cast<float>(kLevels) * kStep == 1.0F);
  // Adding this number leaves round_half_even(v) in the low bits of the sum, for |v| < 2^22.
  static constexpr float kRound = 12582912.0F;
  static constexpr std::uint32_t kRoundBits = 0x4B400000U;
  static constexpr std::uint32_t kFraction = 0x007FFFFFU;  // bits of a float below its exponent

  struct Quantiser {
    float absmax;
    float pre;
    float gain;
    std::uint32_t key;

    Quantiser(float block_absmax, std::uint64_t seed)
        : absmax(block_absmax),
          pre(absmax < 0x1p-60F ? 0x1p64F : 1.0F),
          gain(absmax > 0.0F ? static_cast<float>(kLevels) / (absmax * pre) : 0.0F),
          key(hash32(static_cast<std::uint32_t>(seed) ^ (to_bits(absmax) & kFraction)) ^
              static_cast<std::uint32_t>(seed >> 32)) {}

    float draw(std::int64_t i) const {
      return (static_cast<float>(hash32(key + static_cast<std::uint32_t>(i)) >> 16) + 0.5F) * 0x1p-16F - 0.5F;
    }
    int quantised(float value, std::int64_t i, bool stochastic) const {
      const float v = (value * pre) * gain;
      return static_cast<int>(std::nearbyint(stochastic ? v + draw(i) : v));
    }
    float decoded(int q) const { return absmax * (static_cast<float>(q) * kStep); }
  };

  static std::int64_t run_of(std::int64_t count) { return (count + kParts - 1) / kParts; }
  static std::int64_t block_bytes(const Spec&, std::int64_t elements) { return kScaleBytes + run_of(elements); }

  static bool encode_block(const Spec& spec, const BlockInput& input, std::span<std::byte> out) {
    const std::span<const float> z = input.z;
    if (any_non_finite(z)) {
      write_meaningless(out, kZeroByte);
      return true;
    }
    float absmax = 0;
    for (float value : z) absmax = std::fmax(absmax, std::fabs(value));
    store_little(out.data(), to_bits(absmax));
    const Quantiser quantiser(absmax, input.seed);
    const auto count = static_cast<std::int64_t>(z.size());
    const std::int64_t run = run_of(count);
    for (std::int64_t j = 0; j < run; ++j) {
      int byte = 0;
      for (int part = 0; part < kParts; ++part) {
        const std::int64_t i = part * run + j;
        const int q = i < count ? quantiser.quantised(z[i], i, spec.choice(kRoundingOption) == 1) : 0;
        byte |= ((q + kOffset) & kCodeMask) << (part * kBits);
      }
      out[kScaleBytes + j] = static_cast<std::byte>(byte);
    }
    return false;
  }

  static int code_at(std::span<const std::byte> codes, std::int64_t i, std::int64_t run) {
    const int byte = std::to_integer<int>(codes[i % run]);
    if constexpr (kParts == 1) return static_cast<std::int8_t>(byte);
    return ((byte >> (i / run * kBits)) & kCodeMask) - kOffset;
  }

  static bool decode_block(const Spec&, std::span<const std::byte> in, std::span<float> values) {
    const Quantiser quantiser(from_bits(load_little<std::uint32_t>(in.data())), 0);
    const auto count = static_cast<std::int64_t>(values.size());
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = quantiser.decoded(code_at(in.subspan(kScaleBytes), i, run_of(count)));
    return valid_scale(quantiser.absmax);
  }

  static void error_bounds(const Spec& spec, std::span<const float> block, std::span<double> bounds) {
    double absmax = 0;
    for (double x : block) absmax = std::fmax(absmax, std::fabs(x));
    const double steps = spec.choice(kRoundingOption) == 1 ? 1 : 0.5;
    std::fill(bounds.begin(), bounds.end(), absmax / kLevels * steps * (1 + 1e-4) + 2e-45);
  }
};

}  // namespace thinwire::codec
