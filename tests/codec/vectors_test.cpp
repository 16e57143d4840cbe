// Golden vectors: files that every release must read and write again, byte for byte. For a new codec (or a new version
// of a format, never a changed one) the test writes the missing files when THINWIRE_WRITE_VECTORS is set; add them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/codec/implementations.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/base/hash32.hpp"
#include "thinwire/codec/stream.hpp"

namespace thinwire::codec {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789ABCDEFULL;

// Integers times powers of two: the same on every machine. Sizes spread over 2^7, every 17th is 0.
Floats golden_values() {
  Floats values(2500);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const auto integer = static_cast<float>(static_cast<std::int32_t>(hash32(i) >> 8) - (1 << 23));
    values[i] = i % 17 == 0 ? 0.0F : std::ldexp(integer, static_cast<int>(i / 97 % 7) - 24);
  }
  return values;
}

const Lengths& golden_segments() {
  static const Lengths segments{2100, 1, 399};
  return segments;
}

std::filesystem::path file_of(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return std::filesystem::path(THINWIRE_TEST_SOURCE_DIR) / "vectors" / (text + ".twc");
}

class Vectors : public EveryCodec {};

TEST_P(Vectors, AreWrittenAndReadAsEver) {
  const Floats values = golden_values();
  const Bytes written = write_stream(codec.codec(), values, golden_segments(), kSeed);
  const std::filesystem::path file = file_of(codec.codec().text());
  if (std::getenv("THINWIRE_WRITE_VECTORS") != nullptr && !std::filesystem::exists(file)) {
    const std::span<const std::byte> chunk(written);
    write_file_atomically(file.string(), FileChunks{&chunk, 1});
  }
  const Bytes golden = read_file(file.string());
  EXPECT_TRUE(written == golden) << file << " would be written otherwise";
  const Stream stream = read_stream(golden);
  EXPECT_EQ(stream.codec, codec.codec().text());
  EXPECT_EQ(stream.segments, golden_segments());
  EXPECT_EQ(bits_of(decode_stream(stream)), bits_of(codec.decoded(stream.payload, golden_segments(), values.size())));
}
THINWIRE_FOR_EVERY_CODEC(Vectors);

TEST(VectorFiles, AreAllOfCodecsThatAreTried) {
  std::vector<std::string> known;
  for (const std::string& text : codec_texts()) known.push_back(file_of(make_codec(text)->text()).filename());
  for (const auto& entry : std::filesystem::directory_iterator(file_of("x").parent_path()))
    EXPECT_NE(std::find(known.begin(), known.end(), entry.path().filename()), known.end()) << entry.path();
}

// ---- the file around them

std::string refusal(const Bytes& bytes) {
  try {
    decode_stream(read_stream(bytes));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Stream, EveryCutIsRefused) {
  const Bytes good = write_stream(*make_codec("int4"), normal_floats(300, 1), Lengths{200, 100}, 0);
  EXPECT_EQ(refusal(good), "accepted");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(refusal(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), "accepted") << size;
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer), "accepted");
}

TEST(Stream, EveryChangedByteIsRefusedOrHarmless) {
  const Bytes good = write_stream(*make_codec("top_k:density=0.1"), normal_floats(300, 2), Lengths{300}, 0);
  constexpr std::size_t kFlags = 12;  // the four bytes of flags tell about the input, nothing else
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (at >= kFlags && at < kFlags + 4) continue;
    for (const std::byte change : {std::byte{1}, std::byte{0x80}, std::byte{0xFF}}) {
      Bytes bytes = good;
      bytes[at] ^= change;
      EXPECT_NE(refusal(bytes), "accepted") << "byte " << at;
    }
  }
}

TEST(Stream, TellsOfNonFiniteInputs) {
  Floats values = normal_floats(300, 3);
  EXPECT_FALSE(read_stream(write_stream(*make_codec("int8"), values, Lengths{300}, 0)).non_finite);
  values[7] = std::nanf("");
  const Bytes bytes = write_stream(*make_codec("int8"), values, Lengths{300}, 0);
  EXPECT_TRUE(read_stream(bytes).non_finite);
}

TEST(Stream, HoldsNoSegmentsAndEmptyOnes) {
  for (const Lengths& segments : {Lengths{}, Lengths{0}, Lengths{0, 5, 0}}) {
    const Floats values(segments.size() == 3 ? 5 : 0, 1.0F);
    const Bytes bytes = write_stream(*make_codec("fp32"), values, segments, 0);
    EXPECT_EQ(decode_stream(read_stream(bytes)), values);
    EXPECT_EQ(read_stream(bytes).segments, segments);
  }
}

}  // namespace
}  // namespace thinwire::codec
