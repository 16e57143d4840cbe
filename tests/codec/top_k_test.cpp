// What top_k sends: counted and compared by hand, beside what the conformance suite checks for every codec.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/codec/implementations.hpp"
#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

Floats sent_by(const std::string& text, const Floats& x) {
  return Subject(text).round_trip(x, {static_cast<std::int64_t>(x.size())});
}

std::int64_t non_zeros(const Floats& values) {
  return std::count_if(values.begin(), values.end(), [](float value) { return value != 0; });
}

TEST(TopK, SendsTheLargestAsTheyAre) {
  const Floats x{0.5F, -3.0F, 0.25F, 2.0F, -0.125F, 1.0F, -1.0F, 0.0F};
  EXPECT_EQ(sent_by("top_k:density=0.25", x), (Floats{0, -3.0F, 0, 2.0F, 0, 0, 0, 0}));
  EXPECT_EQ(sent_by("top_k:density=0.375", x), (Floats{0, -3.0F, 0, 2.0F, 0, 1.0F, 0, 0})) << "the first of two equals";
  EXPECT_EQ(sent_by("top_k:density=1", x), x);
}

TEST(TopK, SendsTheDensityOfEveryBlockRoundedUp) {
  EXPECT_EQ(non_zeros(sent_by("top_k:density=0.01", normal_floats(2048, 1))), 21);
  EXPECT_EQ(non_zeros(sent_by("top_k:density=0.01", normal_floats(2048 + 100, 2))), 21 + 1);
  EXPECT_EQ(non_zeros(sent_by("top_k:density=0.1,block=128", normal_floats(1280, 3))), 10 * 13);
  EXPECT_EQ(non_zeros(sent_by("top_k:density=0.1,select=sampled", normal_floats(2048, 4))), 205);
}

TEST(TopK, ASampledThresholdFindsNearlyAllThatMatters) {
  const Floats x = normal_floats(2048, 5);
  const auto energy = [](const Floats& values) {
    double sum = 0;
    for (double value : values) sum += value * value;
    return sum;
  };
  const double exact = energy(sent_by("top_k:density=0.1", x));
  EXPECT_GT(energy(sent_by("top_k:density=0.1,select=sampled", x)), 0.6 * exact);
}

TEST(TopK, BytesAreWhatTheFormatSays) {
  EXPECT_EQ(make_codec("top_k:density=0.25,block=256")->wire_bytes(Lengths{4}), 1 + 4);
  EXPECT_EQ(make_codec("top_k:density=0.01")->wire_bytes(Lengths{2048 + 1}), 21 * 6 + 6);
  Bytes bytes(10);
  make_codec("top_k:density=0.5,block=256")->encode(Floats{0.0F, 1.0F, -2.0F, 0.0F}, Lengths{4}, bytes);
  std::vector<int> numbers;
  for (std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}));
}

TEST(TopK, IndicesThatNoEncoderWritesAreCorrupt) {
  const auto codec = make_codec("top_k:density=0.5,block=256");
  Floats back(4);
  Bytes good(10);
  codec->encode(Floats{0.0F, 1.0F, -2.0F, 0.0F}, Lengths{4}, good);
  for (const auto& [first, second] : {std::pair{1, 1}, {2, 1}, {1, 4}, {255, 255}}) {
    Bytes bytes = good;
    bytes[0] = static_cast<std::byte>(first);
    bytes[1] = static_cast<std::byte>(second);
    EXPECT_THROW(codec->decode(bytes, Lengths{4}, back), Error) << first << ", " << second;
  }
  Bytes infinite = good;
  infinite[4] = std::byte{0x80};
  infinite[5] = std::byte{0x7F};
  EXPECT_THROW(codec->decode(infinite, Lengths{4}, back), Error);
}

}  // namespace
}  // namespace thinwire::codec
