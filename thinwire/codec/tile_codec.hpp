// The codecs of this room: a spec and the kernels that do its work. Private to the room.
#pragma once

#include <algorithm>

#include "thinwire/codec/codec.hpp"
#include "thinwire/codec/format.hpp"

namespace thinwire::codec {

class TileCodec final : public Codec {
 public:
  explicit TileCodec(const Spec& spec) : spec_(spec) {}

  std::string text() const override { return to_text(spec_); }
  std::int64_t block_elements() const override { return spec_.block; }
  bool lossless() const override { return spec_.format->lossless; }
  std::int64_t wire_bytes(Segments segments) const override { return segments_bytes(spec_, segments); }
  using Codec::encode;
  EncodeReport encode(Values values, Segments segments, std::span<std::byte> out, std::uint64_t seed) const override;
  void decode(std::span<const std::byte> bytes, Segments segments, std::span<float> values) const override;

  const TileKernels& kernels() const { return tile_kernels(*spec_.format); }

  // Calls visit(shape, element offset, byte offset) for every tile of the segments, in order.
  template <class Visit>
  void each_tile(Segments segments, std::uint64_t seed, Visit visit) const {
    const std::int64_t whole_bytes = piece_bytes(spec_, kUnitElements);
    std::int64_t element = 0;
    std::int64_t byte = 0;
    for (std::int64_t length : segments) {
      for (std::int64_t at = 0; at < length; at += kUnitElements) {
        const std::int64_t count = std::min(kUnitElements, length - at);
        visit(TileShape{spec_, count, seed}, element, byte);
        element += count;
        byte += count == kUnitElements ? whole_bytes : piece_bytes(spec_, count);
      }
    }
  }

 private:
  Spec spec_;
};

// A tile of the values as fp32: where they lie, or widened.
class WideTile {
 public:
  explicit WideTile(Values values) : values_(values) {}

  const float* at(std::int64_t element, std::int64_t count);

 private:
  Values values_;
  alignas(64) float wide_[kUnitElements];
};

// Sizes that a caller must get right. `place` is the function it called.
void require_elements(const char* place, const char* what, std::size_t got, std::int64_t want);
void require_out_bytes(const char* place, std::size_t got, std::int64_t want);
void require_in_bytes(const char* place, std::size_t got, std::int64_t want);
[[noreturn]] void fail_corrupt(const char* place);

}  // namespace thinwire::codec
