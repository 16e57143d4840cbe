#include "thinwire/codec/tile_codec.hpp"

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

const TileKernels* kernels_of(Kind kind) {
  switch (kind) {
    case Kind::kFp32:
      return &kFp32Kernels;
    case Kind::kBf16:
      return &kBf16Kernels;
    case Kind::kInt8:
      return &kInt8Kernels;
    case Kind::kInt4:
      return &kInt4Kernels;
    case Kind::kOneBit:
      return &kOneBitKernels;
  }
  return nullptr;
}

void require(ErrorCode code, const char* place, const char* what, std::size_t got, std::int64_t want) {
  if (static_cast<std::int64_t>(got) == want) return;
  fail(code, {.place = place, .what = what, .got = std::to_string(got), .want = std::to_string(want), .hint = ""});
}

}  // namespace

TileCodec::TileCodec(const Spec& spec) : spec_(spec), kernels_(kernels_of(spec.kind)) {}

EncodeReport TileCodec::encode(std::span<const float> values, Segments segments, std::span<std::byte> out) const {
  require_elements("codec::encode", "number of values", values.size(), segments_elements(segments));
  require_out_bytes("codec::encode", out.size(), wire_bytes(segments));
  EncodeReport report;
  each_tile(segments, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    report.non_finite |= kernels_->encode(shape, values.data() + element, nullptr, out.data() + byte, nullptr);
  });
  return report;
}

void TileCodec::decode(std::span<const std::byte> bytes, Segments segments, std::span<float> values) const {
  require_elements("codec::decode", "number of values", values.size(), segments_elements(segments));
  require_in_bytes("codec::decode", bytes.size(), wire_bytes(segments));
  bool valid = true;
  each_tile(segments, [&](const TileShape& shape, std::int64_t element, std::int64_t byte) {
    valid &= kernels_->decode(shape, bytes.data() + byte, values.data() + element);
  });
  if (!valid) fail_scale("codec::decode");
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

void fail_scale(const char* place) {
  fail(ErrorCode::kCorrupt, {.place = place,
                             .what = "scale of a block",
                             .got = "a negative number, a NaN or an infinity",
                             .want = "a finite number, at least 0",
                             .hint = ""});
}

std::shared_ptr<const Codec> make_codec(std::string_view text) {
  return std::make_shared<const TileCodec>(spec_from_text(text));
}

}  // namespace thinwire::codec
