// one_bit: [fp32 scale][one bit per element, set where it is below 0], per block. Decoded: +-scale, so 0 and -0 are
// +scale.
//
// The scale is the block's root mean square (minimises nothing, but keeps the norm: 1-bit Adam) or its mean magnitude
// (minimises the squared error: signSGD), summed up as canonical_sum.hpp says, in doubles, since squares of floats
// neither overflow nor vanish in them: the scale of 2^k * x is 2^k times the scale of x for every k that keeps both
// normal. Error of an element: | |x| - scale |. Bytes of a block of n: 4 + ceil(n / 8).
#pragma once

#include <cmath>

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

enum OneBitScale { kRms = 0, kMeanAbs = 1 };

// Of `count` elements whose squares or magnitudes sum up to `sum`.
inline float one_bit_scale(int kind, double sum, std::int64_t count) {
  if (count == 0) return 0.0F;
  const double mean = sum / static_cast<double>(count);
  return static_cast<float>(kind == kRms ? std::sqrt(mean) : mean);
}

extern const Format kOneBit;

}  // namespace thinwire::codec
