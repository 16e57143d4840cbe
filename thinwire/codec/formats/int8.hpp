// int8: [fp32 absmax][one code in -127 ... 127 per element], per block (packed_ints.hpp).
// Error: at most absmax / 254, or absmax / 127 with stochastic rounding. Bytes of a block of n: 4 + n.
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kInt8;

}  // namespace thinwire::codec
