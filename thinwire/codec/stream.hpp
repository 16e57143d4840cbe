// Encoded values as a file: a versioned header that names the codec, then the bytes. docs/formats.md, "Encoded file".
// Between ranks no header travels: there codec and segments are agreed on at the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thinwire/codec/codec.hpp"

namespace thinwire::codec {

// Header and payload of a stream; `payload` points into the bytes that were read.
struct Stream {
  std::string codec;  // its text
  std::vector<std::int64_t> segments;
  std::span<const std::byte> payload;
  bool non_finite = false;  // the encoder saw a NaN or an infinity

  std::int64_t elements() const;
};

// REQUIRES: values.size() == sum of segments. `seed` as of Codec::encode.
std::vector<std::byte> write_stream(const Codec& codec, Values values, Segments segments, std::uint64_t seed);

// Checks magic, version, sizes and checksum, and that the codec is known. Throws Error kCorrupt.
Stream read_stream(std::span<const std::byte> bytes);

// Throws Error kCorrupt.
std::vector<float> decode_stream(const Stream& stream);

}  // namespace thinwire::codec
