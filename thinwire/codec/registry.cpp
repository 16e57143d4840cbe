// The list of codecs. A new one adds its header, its line here and its source to CMakeLists.txt.
#include <array>

#include "thinwire/codec/format.hpp"
#include "thinwire/codec/formats/bf16.hpp"
#include "thinwire/codec/formats/eden.hpp"
#include "thinwire/codec/formats/fp16.hpp"
#include "thinwire/codec/formats/fp32.hpp"
#include "thinwire/codec/formats/int2.hpp"
#include "thinwire/codec/formats/int4.hpp"
#include "thinwire/codec/formats/int8.hpp"
#include "thinwire/codec/formats/one_bit.hpp"
#include "thinwire/codec/formats/top_k.hpp"

namespace thinwire::codec {

std::span<const Format* const> formats() {
  static constexpr std::array kFormats = {
      &kBf16, &kEden, &kFp16, &kFp32, &kInt2, &kInt4, &kInt8, &kOneBit, &kTopK,
  };
  return kFormats;
}

}  // namespace thinwire::codec
