// Counter-based random numbers: a value is a function of (seed, counter), so that ranks agree without talking.
#pragma once

#include <cstdint>

namespace thinwire {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one 64-bit value per input, well mixed.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace thinwire
