// fp32: four bytes per element, little endian, no scale. Identity: for tests, and for "stay dense".
// Error: 0. Bytes of n elements: 4n. NaN and infinity are carried.
#pragma once

#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

extern const Format kFp32;

}  // namespace thinwire::codec
