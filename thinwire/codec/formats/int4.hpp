// int4: [fp32 absmax][two codes in -7 ... 7 per byte], per block (packed_ints.hpp).
// Error: at most absmax / 14, or absmax / 7 with stochastic rounding. Bytes of a block of n: 4 + ceil(n / 2).
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kInt4;

}  // namespace thinwire::codec
