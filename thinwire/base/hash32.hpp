// Bijective mixing of 32 bits, for counter-based random numbers in vector lanes.
#pragma once

#include <cstdint>

namespace thinwire {

// lowbias32 (C. Wellons, "Prospecting for Hash Functions", 2018).
constexpr std::uint32_t hash32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

}  // namespace thinwire
