// fp16: IEEE binary16, rounded to nearest even. No scale. Finite values stay finite: beyond +-65504 they saturate.
// Error: at most |x| * 2^-11 below 65504, and 2^-25. Bytes of n elements: 2n. NaN and infinity are carried.
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kFp16;

}  // namespace thinwire::codec
