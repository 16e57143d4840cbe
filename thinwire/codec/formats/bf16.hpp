// bf16: the upper half of a binary32, rounded to nearest even. No scale. Finite values stay finite.
// Error: at most |x| * 2^-8 (more at the very largest), and 2^-134. Bytes of n elements: 2n. NaN and infinity are
// carried.
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kBf16;

}  // namespace thinwire::codec
