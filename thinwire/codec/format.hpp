// What a codec brings: its options, its bytes, its error bound and, for one block, the scalar encode and decode.
// Private to the room. registry.cpp lists the formats; everything above a block is written once for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "thinwire/codec/spec.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {

// One option of a codec's text. Its value is a number, or an index into `choices` when there are any.
struct OptionRule {
  std::string_view key;
  double default_value = 0;
  std::span<const std::string_view> choices = {};
  double least = 0;        // of a number
  double most = 0;         // of a number
  bool cuts_unit = false;  // a number that divides kUnitElements
  bool whole = true;       // no fraction
};

// The rule of the option `block`, which every codec with a scale has.
constexpr OptionRule block_rule(double default_value, double least = 1) {
  return {.key = "block", .default_value = default_value, .least = least, .most = kUnitElements, .cuts_unit = true};
}

struct BlockInput {
  std::span<const float> z;
  KeepWords keep = nullptr;  // z is +0 where an element does not take part
  std::uint64_t seed = 0;
};

struct Format {
  std::string_view name;
  std::span<const OptionRule> options = {};  // in the order of the text
  std::int64_t default_block = 1;            // where no option sets it
  bool lossless = false;
  bool scaled = false;  // the bytes of a block begin with an fp32 scale
  bool narrow = false;  // its range is smaller than fp32's: large values saturate, small ones vanish

  bool randomised = false;  // elements of a block are mixed: a constant does not come back as one

  std::int64_t (*block_bytes)(const Spec& spec, std::int64_t elements);

  // The reference. encode_block returns true when z holds a NaN or an infinity; decode_block returns false when the
  // bytes cannot have been written by encode_block.
  bool (*encode_block)(const Spec& spec, const BlockInput& input, std::span<std::byte> out);
  bool (*decode_block)(const Spec& spec, std::span<const std::byte> in, std::span<float> values);

  // For every element of a block the largest |value - decode(encode(value))|, whatever the seed: exact arithmetic plus
  // what fp32 rounding adds. REQUIRES: bounds.size() == block.size().
  void (*error_bounds)(const Spec& spec, std::span<const float> block, std::span<double> bounds);

  // Kernels of the instruction set that implementation.hpp chose.
  const TileKernels& (*vector_kernels)();

  // Texts that the conformance suite runs beside the default one.
  std::span<const std::string_view> samples = {};
};

// All formats, sorted by name.
std::span<const Format* const> formats();

}  // namespace thinwire::codec
