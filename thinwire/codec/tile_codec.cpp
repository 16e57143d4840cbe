#include "thinwire/codec/tile_codec.hpp"

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

void require(ErrorCode code, const char* place, const char* what, std::size_t got, std::int64_t want) {
  if (static_cast<std::int64_t>(got) == want) return;
  fail(code, {.place = place, .what = what, .got = std::to_string(got), .want = std::to_string(want), .hint = ""});
}

}  // namespace

EncodeReport TileCodec::encode(Values values, Segments segments, std::span<std::byte> out, std::uint64_t seed) const {
  require_elements("codec::encode", "number of values", values.size(), segments_elements(segments));
  require_out_bytes("codec::encode", out.size(), wire_bytes(segments));
  const TileKernels& tile = kernels();
  WideTile wide(values);
  EncodeReport report;
  each_tile(segments, seed, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    const float* z = wide.at(element, shape.elements);
    report.non_finite |= tile.encode(shape, z, nullptr, out.data() + byte, nullptr);
  });
  return report;
}

void TileCodec::decode(std::span<const std::byte> bytes, Segments segments, std::span<float> values) const {
  require_elements("codec::decode", "number of values", values.size(), segments_elements(segments));
  require_in_bytes("codec::decode", bytes.size(), wire_bytes(segments));
  const TileKernels& tile = kernels();
  bool valid = true;
  each_tile(segments, 0, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    valid &= tile.decode(shape, bytes.data() + byte, values.data() + element);
  });
  if (!valid) fail_corrupt("codec::decode");
}

const float* WideTile::at(std::int64_t element, std::int64_t count) {
  switch (values_.dtype()) {
    case Dtype::kFp32:
      return values_.fp32() + element;
    case Dtype::kBf16:
      tile_loops().widen_bf16(&values_.bf16()[element].bits, wide_, count);
      break;
    case Dtype::kFp16:
      tile_loops().widen_fp16(&values_.fp16()[element].bits, wide_, count);
      break;
  }
  return wide_;
}

void require_elements(const char* place, const char* what, std::size_t got, std::int64_t want) {
  require(ErrorCode::kInvalidArgument, place, what, got, want);
}

void require_out_bytes(const char* place, std::size_t got, std::int64_t want) {
  require(ErrorCode::kInvalidArgument, place, "bytes of room for the encoded values", got, want);
}

void require_in_bytes(const char* place, std::size_t got, std::int64_t want) {
  require(ErrorCode::kCorrupt, place, "number of encoded bytes", got, want);
}

void fail_corrupt(const char* place) {
  fail(ErrorCode::kCorrupt, {.place = place,
                             .what = "encoded block",
                             .got = "a scale or an index that no encoder writes",
                             .want = "finite scales of at least 0, indices inside the block",
                             .hint = "the bytes are damaged, or of another codec"});
}

std::shared_ptr<const Codec> make_codec(std::string_view text) {
  return std::make_shared<const TileCodec>(spec_from_text(text));
}

}  // namespace thinwire::codec
