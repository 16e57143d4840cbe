// The order in which a block's terms are added up in double, the same for every implementation: 16 lanes, lane l adds
// the terms of elements l, l+16, l+32, ... in that order from +0; then lane l += lane l+8 for l < 8, then +4, +2, +1.
#pragma once

#include <array>
#include <cstddef>

namespace thinwire::codec {

inline constexpr std::size_t kSumLanes = 16;

inline double fold_lanes(double* lane) {
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2)
    for (std::size_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// term(i) for i in 0 ... count - 1.
template <class Term>
double canonical_sum(std::size_t count, Term term) {
  std::array<double, kSumLanes> lane{};
  for (std::size_t i = 0; i < count; ++i) lane[i % kSumLanes] += term(i);
  return fold_lanes(lane.data());
}

}  // namespace thinwire::codec
