// top_k: [k indices][k fp32 values], per block of n elements: the k = ceil(density * n) of largest magnitude, in the
// order of their places. Indices have 1 byte where the option `block` is at most 256, else 2. Everything else decodes
// to 0: a residual is mandatory.
//
// select=exact: the k largest, of equal magnitudes the first. select=sampled: a threshold is the ceil(density * m)-th
// largest of the m = min(n, 64) magnitudes at places floor(i * n / m); sent are the first k elements of at least the
// threshold and, if there are fewer, the first of the others: cheaper, and biased towards the front of the block. Error
// of an element: |x|, or 0 when it is sent. A value of -0 is sent as +0. Bytes of a block: k * (index bytes + 4).
#pragma once

#include <algorithm>
#include <cmath>

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

inline constexpr std::size_t kTopKDensity = 0;  // options
inline constexpr std::size_t kTopKSelect = 1;
inline constexpr std::int64_t kTopKSample = 64;

inline std::int64_t top_k_count(const Spec& spec, std::int64_t elements) {
  const auto count = static_cast<std::int64_t>(std::ceil(spec.options[kTopKDensity] * static_cast<double>(elements)));
  return std::clamp<std::int64_t>(count, 1, elements);
}
inline std::int64_t top_k_index_bytes(const Spec& spec) {
  return spec.block <= 256 ? 1 : 2;
}

extern const Format kTopK;

}  // namespace thinwire::codec
