// The codecs of this room: a spec and the kernels that do its work. Private to the room.
#pragma once

#include <algorithm>

#include "thinwire/codec/codec.hpp"
#include "thinwire/codec/spec.hpp"
#include "thinwire/codec/tile.hpp"

namespace thinwire::codec {

class TileCodec final : public Codec {
 public:
  explicit TileCodec(const Spec& spec);

  std::string text() const override { return to_text(spec_); }
  std::int64_t block_elements() const override { return spec_.block; }
  bool lossless() const override { return spec_.kind == Kind::kFp32; }
  std::int64_t wire_bytes(Segments segments) const override { return segments_bytes(spec_, segments); }
  EncodeReport encode(std::span<const float> values, Segments segments, std::span<std::byte> out) const override;
  void decode(std::span<const std::byte> bytes, Segments segments, std::span<float> values) const override;

  const Spec& spec() const { return spec_; }
  const TileKernels& kernels() const { return *kernels_; }

  // Calls visit(shape, element offset, byte offset) for every tile of the segments, in order.
  template <class Visit>
  void each_tile(Segments segments, Visit visit) const {
    std::int64_t element = 0;
    std::int64_t byte = 0;
    for (std::int64_t length : segments) {
      for (std::int64_t at = 0; at < length; at += kUnitElements) {
        const std::int64_t count = std::min(kUnitElements, length - at);
        visit(TileShape{count, spec_.block, spec_.scale}, element, byte);
        element += count;
        byte += piece_bytes(spec_, count);
      }
    }
  }

 private:
  Spec spec_;
  const TileKernels* kernels_;
};

// Sizes that a caller must get right. `place` is the function it called.
void require_elements(const char* place, const char* what, std::size_t got, std::int64_t want);
void require_out_bytes(const char* place, std::size_t got, std::int64_t want);
void require_in_bytes(const char* place, std::size_t got, std::int64_t want);
[[noreturn]] void fail_scale(const char* place);

}  // namespace thinwire::codec
