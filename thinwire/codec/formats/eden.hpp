// eden: [fp32 scale][u32 seed][codes], per block. Vargaftik et al., "EDEN", ICML 2022: rotate the block at random, so
// that every coordinate looks normal; quantise each to the nearest Lloyd-Max centroid of N(0, 1); scale so that the
// estimate is unbiased, or has the least error. Stateless: an unbiased estimate needs no residual.
//
// Rotation of n elements: with p the largest power of two <= n, a transform of p elements gives them random signs, then
// does the Walsh-Hadamard transform, then multiplies by 1 / sqrt(p). Two rounds of: elements 0 ... p-1; if p < n,
// elements n-p ... n-1. All is orthogonal, so no padding is sent. One round would do for blocks of like elements, but
// an outlier becomes values of one size in it, which quantise with a bias; the second makes them normal. Butterflies
// (a, b) -> (a + b, a - b) run with distance 1, 2, 4 ... p / 2, in fp32; this order is part of the format. Element i of
// a transform changes sign when bit i % 32 of hash32(key + i / 32) is 1; the first key is the seed, the next ones
// hash32(the one before).
//
// The block is first divided by the power of two of its largest magnitude, exactly, and the scale multiplied by it:
// nothing overflows, and 2^k * x becomes 2^k times what x becomes. With y the rotated block and z = y * (sqrt(n) /
// |x|): a code is the sign of z and the number of thresholds (middles of centroids) below |z|; Q are the centroids. The
// scale is |x|^2 / <y, Q> (unbiased) or <y, Q> / |Q|^2 (least error); sums in double, 16 lanes (canonical_sum.hpp).
// Decoded: scale * (inverse rotation of Q). Codes are bit planes of ceil(n / 8) bytes: the sign, then the index from
// its lowest bit up.
//
// Variance of the estimate over |x|^2, for large n: at 1 bit pi/2 - 1 unbiased, 1 - 2/pi with least error.
// Bytes of a block of n: 8 + bits * ceil(n / 8).
#pragma once

#include <array>

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

enum EdenScale { kUnbiased = 0, kLeastError = 1 };
inline constexpr std::size_t kEdenBits = 0;  // options
inline constexpr std::size_t kEdenScale = 1;
inline constexpr std::int64_t kEdenHeaderBytes = 8;
inline constexpr int kEdenRounds = 2;

// Positive Lloyd-Max centroids of N(0, 1) and the thresholds between them, by magnitude bits (bits - 1).
struct EdenLevels {
  std::array<float, 8> centroid;
  std::array<float, 7> threshold;
};
inline constexpr std::array<EdenLevels, 4> kEdenLevels = {{
    {{0.797884560803F}, {}},
    {{0.452780034636F, 1.510417608499F}, {0.981598821568F}},
    {{0.245094178944F, 0.756005281206F, 1.343909278505F, 2.151945704537F},
     {0.500549730075F, 1.049957279855F, 1.747927491521F}},
    {{0.128395029851F, 0.388048299490F, 0.656759118532F, 0.942340456487F, 1.256231197347F, 1.618046386022F,
      2.069017226531F, 2.732589570995F},
     {0.258221664671F, 0.522403709011F, 0.799549787510F, 1.099285826917F, 1.437138791685F, 1.843531806277F,
      2.400803398763F}},
}};

extern const Format kEden;

}  // namespace thinwire::codec
