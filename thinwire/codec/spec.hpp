// A codec as values: its kind, its options, the number of bytes it writes. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thinwire/codec/codec.hpp"

namespace thinwire::codec {

enum class Kind { kFp32, kBf16, kInt8, kInt4, kOneBit };
enum class BlockScale { kRms, kMeanAbs };

struct Spec {
  Kind kind = Kind::kFp32;
  std::int64_t block = 1;
  BlockScale scale = BlockScale::kRms;  // one_bit only
};

// "one_bit:scale=rms,block=2048" and back. Throws Error kInvalidArgument naming what is known and the nearest.
Spec spec_from_text(std::string_view text);
std::string to_text(const Spec& spec);

// Bytes of one block of `elements` <= spec.block; bytes of `elements` that begin at a block border.
std::int64_t block_bytes(const Spec& spec, std::int64_t elements);
std::int64_t piece_bytes(const Spec& spec, std::int64_t elements);

// Sum over the segments. Throws Error kInvalidArgument for a negative length.
std::int64_t segments_bytes(const Spec& spec, Segments segments);
std::int64_t segments_elements(Segments segments);

}  // namespace thinwire::codec
