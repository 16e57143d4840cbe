// A codec as values: its format, its options, the number of bytes it writes. Private to the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "thinwire/codec/codec.hpp"

namespace thinwire::codec {

struct Format;

inline constexpr std::size_t kMostOptions = 4;

struct Spec {
  const Format* format = nullptr;
  std::int64_t block = 1;
  std::array<double, kMostOptions> options = {};  // in the order of format->options; choices as their index

  int choice(std::size_t option) const { return static_cast<int>(options[option]); }
};

// "one_bit:scale=rms,block=2048" and back. Throws Error kInvalidArgument naming what is known and the nearest.
Spec spec_from_text(std::string_view text);
std::string to_text(const Spec& spec);

// Bytes of `elements` that begin at a block border.
std::int64_t piece_bytes(const Spec& spec, std::int64_t elements);

// Sum over the segments. Throws Error kInvalidArgument for a negative length.
std::int64_t segments_bytes(const Spec& spec, Segments segments);
std::int64_t segments_elements(Segments segments);

}  // namespace thinwire::codec
