#include "thinwire/codec/stream.hpp"

#include <cstring>
#include <limits>

#include "thinwire/base/error.hpp"
#include "thinwire/base/hash.hpp"
#include "thinwire/codec/block.hpp"

namespace thinwire::codec {
namespace {

constexpr const char* kPlace = "codec::read_stream";
constexpr char kMagic[] = {'T', 'W', 'C', 'O', 'D', 'E', 'C', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kNonFinite = 1;  // flag
constexpr std::uint32_t kLongestText = 4096;

[[noreturn]] void fail_stream(const std::string& what, const std::string& got, const std::string& want) {
  fail(ErrorCode::kCorrupt, {.place = kPlace,
                             .what = what,
                             .got = got,
                             .want = want,
                             .hint = "a file that thinwire codec encode has written"});
}

class Writer {
 public:
  template <class Word>
  void number(Word word) {
    bytes_.resize(bytes_.size() + sizeof(word));
    store_little(bytes_.data() + bytes_.size() - sizeof(word), word);
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::span<const std::byte> raw(std::uint64_t count, const char* what) {
    if (count > left_.size())
      fail_stream(what, std::to_string(left_.size()) + " bytes left", "at least " + std::to_string(count));
    const auto taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  template <class Word>
  Word number(const char* what) {
    return load_little<Word>(raw(sizeof(Word), what).data());
  }
  std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<std::int64_t> read_segments(Reader& reader) {
  const auto count = reader.number<std::uint64_t>("number of segments");
  if (count > reader.left() / sizeof(std::uint64_t))
    fail_stream("number of segments", std::to_string(count), "no more than the file has room for");
  std::vector<std::int64_t> segments;
  std::int64_t elements = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::int64_t>(reader.number<std::uint64_t>("length of a segment"));
    if (length < 0 || length > std::numeric_limits<std::int64_t>::max() / 8 - elements)
      fail_stream("length of a segment", std::to_string(length), "at least 0, and a sum that fits");
    elements += length;
    segments.push_back(length);
  }
  return segments;
}

}  // namespace

std::int64_t Stream::elements() const {
  std::int64_t sum = 0;
  for (const std::int64_t length : segments) sum += length;
  return sum;
}

std::vector<std::byte> write_stream(const Codec& codec, Values values, Segments segments, std::uint64_t seed) {
  std::vector<std::byte> payload(static_cast<std::size_t>(codec.wire_bytes(segments)));
  const EncodeReport report = codec.encode(values, segments, payload, seed);
  const std::string text = codec.text();
  Writer writer;
  writer.raw(std::as_bytes(std::span(kMagic)));
  writer.number(kVersion);
  writer.number(report.non_finite ? kNonFinite : std::uint32_t{0});
  writer.number(static_cast<std::uint64_t>(payload.size()));
  writer.number(hash_bytes(payload));
  writer.number(static_cast<std::uint64_t>(segments.size()));
  for (const std::int64_t length : segments) writer.number(static_cast<std::uint64_t>(length));
  writer.number(static_cast<std::uint32_t>(text.size()));
  writer.raw(std::as_bytes(std::span(text)));
  writer.raw(payload);
  return writer.take();
}

Stream read_stream(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto magic = reader.raw(sizeof(kMagic), "encoded file");
  if (std::memcmp(magic.data(), kMagic, sizeof(kMagic)) != 0) fail_stream("first bytes", "others", "TWCODEC");
  const auto version = reader.number<std::uint32_t>("version");
  if (version != kVersion) fail_stream("version", std::to_string(version), std::to_string(kVersion));
  Stream stream;
  stream.non_finite = (reader.number<std::uint32_t>("flags") & kNonFinite) != 0;
  const auto size = reader.number<std::uint64_t>("number of encoded bytes");
  const auto checksum = reader.number<std::uint64_t>("checksum");
  stream.segments = read_segments(reader);
  const auto length = reader.number<std::uint32_t>("length of the codec's text");
  if (length > kLongestText) fail_stream("length of the codec's text", std::to_string(length), "at most 4096");
  const auto text = reader.raw(length, "codec's text");
  stream.codec.assign(reinterpret_cast<const char*>(text.data()), text.size());
  stream.payload = reader.raw(size, "encoded bytes");
  if (reader.left() != 0) fail_stream("end of the file", std::to_string(reader.left()) + " bytes more", "none");
  if (hash_bytes(stream.payload) != checksum)
    fail_stream("checksum", hex(hash_bytes(stream.payload)), hex(checksum) + ", as in the header");
  try {
    const std::int64_t want = make_codec(stream.codec)->wire_bytes(stream.segments);
    if (want != static_cast<std::int64_t>(size))
      fail_stream("number of encoded bytes", std::to_string(size),
                  std::to_string(want) + " for its codec and segments");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    fail_stream("codec", "\"" + stream.codec + "\"", std::string("one that is known; ") + error.what());
  }
  return stream;
}

std::vector<float> decode_stream(const Stream& stream) {
  std::vector<float> values(static_cast<std::size_t>(stream.elements()));
  make_codec(stream.codec)->decode(stream.payload, stream.segments, values);
  return values;
}

}  // namespace thinwire::codec
