// int2: [fp32 absmax][four codes in -1 ... 1 per byte], per block (packed_ints.hpp).
// Error: at most absmax / 2, or absmax with stochastic rounding. Bytes of a block of n: 4 + ceil(n / 4).
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kInt2;

}  // namespace thinwire::codec
