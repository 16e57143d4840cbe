// Codecs turn floats into bytes and back. Stateless and thread safe: every method may be called from any thread.
//
// Blocks (the elements that share one scale) are cut inside each segment, from its first element; the last block of a
// segment may be short. A segment is the piece of one parameter that lies in the span. What a block becomes depends on
// its own values and the seed only, so cutting the same parameter elsewhere at a block border changes no bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thinwire/codec/values.hpp"

namespace thinwire::codec {

// Buckets and the chunks of their owners are made of units of this many elements, cut inside each parameter from its
// first one. Here, since it holds for every codec: each block divides it, so that no cut and no change of codec changes
// what a block becomes.
inline constexpr std::int64_t kUnitElements = 2048;

// Lengths, in elements, of the pieces that lie one behind the other in a span. Their sum is the span's size.
using Segments = std::span<const std::int64_t>;

struct EncodeReport {
  bool non_finite = false;  // a NaN or an infinity was among the inputs; the bytes are then valid but meaningless
};

class Codec {
 public:
  virtual ~Codec() = default;

  // The text that makes this codec again, options included: "int4:block=128,rounding=nearest".
  virtual std::string text() const = 0;

  // Elements that share a scale; 1 for codecs without one. Divides kUnitElements.
  virtual std::int64_t block_elements() const = 0;

  // True when decode(encode(x)) == x for every finite fp32 x: no residual is needed.
  virtual bool lossless() const = 0;

  // Exact number of bytes that encode writes.
  virtual std::int64_t wire_bytes(Segments segments) const = 0;

  // `values` are fp32, bf16 or fp16 (widened exactly). `seed` feeds codecs that draw random numbers: a fresh one for
  // every call that is to have errors of its own; the others ignore it.
  // REQUIRES: values.size() == sum of segments, out.size() == wire_bytes(segments); no overlap. No alignment is needed.
  virtual EncodeReport encode(Values values, Segments segments, std::span<std::byte> out, std::uint64_t seed) const = 0;
  EncodeReport encode(Values values, Segments segments, std::span<std::byte> out) const {
    return encode(values, segments, out, 0);
  }

  // Throws Error kCorrupt when bytes.size() != wire_bytes(segments) or encode cannot have written them.
  virtual void decode(std::span<const std::byte> bytes, Segments segments, std::span<float> values) const = 0;
};

// Makes a codec from its text: "fp32", "bf16", "int8:block=128", "int4", "one_bit:scale=rms,block=2048".
// Throws Error kInvalidArgument that lists what is known and names the nearest.
std::shared_ptr<const Codec> make_codec(std::string_view text);

// Names that make_codec knows, sorted.
std::vector<std::string> known_codecs();

}  // namespace thinwire::codec
