#include <gtest/gtest.h>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/codec.hpp"

namespace thinwire::codec {
namespace {

std::string refusal(const std::string& text) {
  try {
    make_codec(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(CodecText, MakesTheSameCodecAgain) {
  for (const char* text : {"fp32", "bf16", "int8:block=128,rounding=nearest", "int4:block=32,rounding=stochastic",
                           "one_bit:scale=rms,block=2048", "one_bit:scale=mean_abs,block=256"}) {
    EXPECT_EQ(make_codec(text)->text(), text);
  }
  EXPECT_EQ(make_codec("one_bit:block=64,scale=mean_abs")->text(), "one_bit:scale=mean_abs,block=64");
}

TEST(CodecText, DefaultsAreThoseOfTheTable) {
  EXPECT_EQ(make_codec("int8")->text(), "int8:block=128,rounding=nearest");
  EXPECT_EQ(make_codec("int4")->text(), "int4:block=128,rounding=nearest");
  EXPECT_EQ(make_codec("one_bit")->text(), "one_bit:scale=rms,block=2048");
  EXPECT_EQ(make_codec("one_bit")->block_elements(), 2048);
  EXPECT_EQ(make_codec("bf16")->block_elements(), 1);
}

TEST(CodecText, EveryKnownNameMakesACodec) {
  EXPECT_EQ(known_codecs(),
            (std::vector<std::string>{"bf16", "eden", "fp16", "fp32", "int2", "int4", "int8", "one_bit", "top_k"}));
  for (const std::string& name : known_codecs()) EXPECT_EQ(make_codec(name)->lossless(), name == "fp32");
}

TEST(CodecText, UnknownNameListsWhatIsKnownAndNamesTheNearest) {
  EXPECT_EQ(refusal("onebit"),
            "[codec::make_codec] codec name; got \"onebit\", want one of bf16 eden fp16 fp32 int2 int4 int8 one_bit "
            "top_k; try one_bit");
  EXPECT_NE(refusal("fp64").find("; try "), std::string::npos);
  EXPECT_NE(refusal("").find("got \"\""), std::string::npos);
}

TEST(CodecText, UnknownOptionsAndValuesAreRefused) {
  EXPECT_EQ(refusal("int8:blok=128"),
            "[codec::make_codec] option of int8; got \"blok\", want one of block rounding; try block");
  EXPECT_EQ(refusal("one_bit:scale=rmss"),
            "[codec::make_codec] option scale; got \"rmss\", want one of rms mean_abs; try rms");
  EXPECT_EQ(refusal("fp32:block=1"), "[codec::make_codec] option of fp32; got \"block\", want no options");
  for (const char* text : {"int8:block=0", "int8:block=100", "int8:block=4096", "int8:block=-128",
                           "int8:block=", "int8:block=128x", "int8:", "int8:block=128,", "int8:scale=rms"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(WireBytes, AreWhatTheFormatSays) {
  const auto bytes = [](const char* text, std::vector<std::int64_t> segments) {
    return make_codec(text)->wire_bytes(segments);
  };
  EXPECT_EQ(bytes("fp32", {10, 0, 3}), 52);
  EXPECT_EQ(bytes("bf16", {10, 0, 3}), 26);
  EXPECT_EQ(bytes("fp16", {10, 0, 3}), 26);
  EXPECT_EQ(bytes("int2", {128}), 36);
  EXPECT_EQ(bytes("int2", {129, 3}), 36 + 5 + 5);
  EXPECT_EQ(bytes("int8", {128}), 132);
  EXPECT_EQ(bytes("int8", {129, 1}), 132 + 5 + 5);
  EXPECT_EQ(bytes("int4", {128}), 68);
  EXPECT_EQ(bytes("int4", {129, 3}), 68 + 5 + 6);
  EXPECT_EQ(bytes("one_bit", {2048}), 260);
  EXPECT_EQ(bytes("one_bit", {4096 + 9}), 520 + 6);
}

// Bytes worked out by hand from docs/formats.md.
TEST(GoldenBytes, OfEveryCodec) {
  const auto encoded = [](const char* text, std::vector<float> values) {
    const auto codec = make_codec(text);
    const std::vector<std::int64_t> segments{static_cast<std::int64_t>(values.size())};
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec->wire_bytes(segments)));
    codec->encode(values, segments, bytes);
    std::vector<int> numbers;
    for (std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
    return numbers;
  };
  using Numbers = std::vector<int>;
  EXPECT_EQ(encoded("fp32", {1.0F, -2.0F}), (Numbers{0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}));
  EXPECT_EQ(encoded("bf16", {1.0F, -1.00390625F, 1.01171875F}), (Numbers{0x80, 0x3F, 0x80, 0xBF, 0x82, 0x3F}));
  EXPECT_EQ(encoded("bf16", {3.4028235e38F}), (Numbers{0x7F, 0x7F}));
  EXPECT_EQ(encoded("fp16", {1.0F, -2.0F, 65520.0F, 5.9604645e-8F, 2.9802322e-8F, 1e-8F, 1.00048828125F}),
            (Numbers{0, 0x3C, 0, 0xC0, 0xFF, 0x7B, 1, 0, 0, 0, 0, 0, 0, 0x3C}));
  EXPECT_EQ(encoded("int2", {2.0F, -2.0F, 0.9F, 1.1F, -1.1F}), (Numbers{0, 0, 0, 0x40, 0x9B, 0xAD}));
  EXPECT_EQ(encoded("int8", {127.0F, -127.0F, 0.5F, 1.5F, -2.5F}), (Numbers{0, 0, 0xFE, 0x42, 127, 0x81, 0, 2, 0xFE}));
  EXPECT_EQ(encoded("int4", {7.0F, -7.0F, 1.0F, 2.0F, 0.0F}), (Numbers{0, 0, 0xE0, 0x40, 0xAF, 0x81, 0x89}));
  EXPECT_EQ(encoded("one_bit", {2.0F, -2.0F, 2.0F, 2.0F, 2.0F, 2.0F, 2.0F, -2.0F, -2.0F}),
            (Numbers{0, 0, 0, 0x40, 0x82, 0x01}));
  EXPECT_EQ(encoded("one_bit:scale=mean_abs", {1.0F, -3.0F}), (Numbers{0, 0, 0, 0x40, 0x02}));
}

}  // namespace
}  // namespace thinwire::codec
