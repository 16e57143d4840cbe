// Numbers and bytes of a block, which every implementation must share bit for bit. Private to the room; formats.md
// explains.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace thinwire::codec {

inline constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;     // all but the sign of a float
inline constexpr std::uint32_t kInfinityBits = 0x7F800000U;  // magnitudes from here on are not finite
inline constexpr std::int64_t kScaleBytes = 4;

inline std::uint32_t to_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

template <class Word>
Word little(Word word) {
  if constexpr (std::endian::native == std::endian::big) {
    return sizeof(Word) == 2 ? static_cast<Word>(__builtin_bswap16(static_cast<std::uint16_t>(word)))
                             : static_cast<Word>(__builtin_bswap32(static_cast<std::uint32_t>(word)));
  }
  return word;
}

template <class Word>
Word load_little(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return little(word);
}

template <class Word>
void store_little(std::byte* to, Word word) {
  word = little(word);
  std::memcpy(to, &word, sizeof(word));
}

// A scale that an encoder can have written: finite and not negative.
inline bool valid_scale(float scale) {
  return to_bits(scale) < kInfinityBits;
}

inline bool any_non_finite(std::span<const float> z) {
  for (float value : z)
    if (!std::isfinite(value)) return true;
  return false;
}

// Of a block, as bytes: the scale, then codes that mean zero. For blocks with a NaN or an infinity.
inline void write_meaningless(std::span<std::byte> out, int zero_byte) {
  store_little(out.data(), std::uint32_t{0});
  std::memset(out.data() + kScaleBytes, zero_byte, out.size() - kScaleBytes);
}

}  // namespace thinwire::codec
