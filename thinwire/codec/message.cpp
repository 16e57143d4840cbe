#include "thinwire/codec/message.hpp"

#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/block.hpp"

namespace thinwire::codec {
namespace {

constexpr const char* kPlace = "codec::read_header";

void require_room(const char* place, ErrorCode code, std::size_t got) {
  if (got >= static_cast<std::size_t>(kMessageHeaderBytes)) return;
  fail(code, {.place = place,
              .what = "bytes for a message header",
              .got = std::to_string(got),
              .want = "at least " + std::to_string(kMessageHeaderBytes),
              .hint = ""});
}

void require_equal(const char* field, int from, std::uint32_t got, std::uint32_t want) {
  if (got == want) return;
  fail(ErrorCode::kMismatch, {.place = kPlace,
                              .what = std::string(field) + " of the message from rank " + std::to_string(from),
                              .got = std::to_string(got),
                              .want = std::to_string(want),
                              .hint = "the same program, version and settings on every rank"});
}

}  // namespace

void write_header(const MessageHeader& header, std::span<std::byte> out) {
  require_room("codec::write_header", ErrorCode::kInvalidArgument, out.size());
  store_little(out.data(), header.magic);
  store_little(out.data() + 4, header.flags);
  store_little(out.data() + 8, header.bucket);
  store_little(out.data() + 12, header.step);
}

MessageHeader read_header(std::span<const std::byte> bytes, const MessageHeader& want, int from) {
  require_room(kPlace, ErrorCode::kCorrupt, bytes.size());
  const MessageHeader header{load_little<std::uint32_t>(bytes.data()), load_little<std::uint32_t>(bytes.data() + 4),
                             load_little<std::uint32_t>(bytes.data() + 8),
                             load_little<std::uint32_t>(bytes.data() + 12)};
  require_equal("magic number", from, header.magic, want.magic);
  require_equal("bucket", from, header.bucket, want.bucket);
  require_equal("step", from, header.step, want.step);
  return header;
}

}  // namespace thinwire::codec
