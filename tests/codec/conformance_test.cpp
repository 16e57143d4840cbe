// What every codec promises, whatever the implementation.
#include <array>
#include <cmath>
#include <limits>

#include "tests/codec/implementations.hpp"
#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

class Conformance : public EveryCodec {
 protected:
  // Blocks as the header defines them: (first, count) inside every segment.
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks(const Lengths& segments) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    std::int64_t first = 0;
    for (std::int64_t length : segments) {
      for (std::int64_t at = 0; at < length; at += codec.spec().block)
        found.emplace_back(first + at, std::min(codec.spec().block, length - at));
      first += length;
    }
    return found;
  }

  void expect_within_bound(const Floats& values, const Lengths& segments) {
    const Floats back = codec.round_trip(values, segments);
    for (const auto& [first, count] : blocks(segments)) {
      std::vector<double> bounds(static_cast<std::size_t>(count));
      codec.spec().format->error_bounds(codec.spec(), std::span(values).subspan(first, count), bounds);
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_LE(std::fabs(double(values[first + i]) - double(back[first + i])), bounds[i])
            << "element " << first + i << " of " << values.size();
    }
  }
};

TEST_P(Conformance, StaysWithinItsBoundForEveryLength) {
  for (std::int64_t d : sampled_lengths()) expect_within_bound(normal_floats(d, static_cast<unsigned>(d)), {d});
}

TEST_P(Conformance, StaysWithinItsBoundOverSegments) {
  for (const Lengths& segments : {Lengths{3, 0, 129, 1, 2049, 128}, Lengths{4097, 7, 2048}, Lengths{0, 0}, Lengths{}}) {
    std::int64_t elements = 0;
    for (std::int64_t length : segments) elements += length;
    expect_within_bound(normal_floats(elements, 5), segments);
  }
}

TEST_P(Conformance, StaysWithinItsBoundForHardValues) {
  Floats negative = normal_floats(2500, 1);
  for (float& value : negative) value = -1.0F - std::fabs(value);
  Floats outlier = normal_floats(2500, 2);
  outlier[1234] = 1e30F;
  Floats largest(2500, kLargest);
  largest[1] = -kLargest;
  expect_within_bound(negative, {2500});
  expect_within_bound(outlier, {2500});
  if (codec.name() != "bf16") expect_within_bound(largest, {2500});
  Floats denormals = normal_floats(2500, 3, 100.0F);
  for (float& value : denormals) value = std::trunc(value) * kTiny;
  expect_within_bound(denormals, {2500});
}

TEST_P(Conformance, WritesExactlyWireBytesAtAnyAddress) {
  constexpr std::byte kGuard{0xA5};
  for (std::int64_t d : {0, 1, 7, 8, 9, 31, 33, 127, 129, 2047, 2049, 4097}) {
    for (std::size_t shift : {0, 1, 3}) {
      const Lengths segments{d, 5};
      const Floats memory = normal_floats(d + 5 + 3, 4);
      const auto values = std::span(memory).subspan(shift, d + 5);
      const auto size = static_cast<std::size_t>(codec.wire_bytes(segments));
      Bytes out(size + 64 + shift, kGuard);
      codec.encode(values, segments, std::span(out).subspan(shift, size));
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i < shift || i >= shift + size) {
          ASSERT_EQ(out[i], kGuard) << "byte " << i << ", d " << d;
        }
      }
      Bytes other(size, kGuard ^ std::byte{0xFF});
      codec.encode(values, segments, other);
      ASSERT_TRUE(std::equal(other.begin(), other.end(), out.begin() + shift)) << "a byte was not written, d " << d;
      Floats back(d + 5 + 16, 7.0F);
      codec.decode(std::span(out).subspan(shift, size), segments, std::span(back).subspan(1, d + 5));
      ASSERT_EQ(back[0], 7.0F);
      for (std::size_t i = d + 6; i < back.size(); ++i) ASSERT_EQ(back[i], 7.0F) << "written past the end, d " << d;
    }
  }
}

TEST_P(Conformance, FiniteStaysFinite) {
  for (float value : {kLargest, -kLargest, std::nextafter(kLargest, 0.0F), 3.3961776e38F}) {
    for (float back : codec.round_trip(Floats(300, value), {300})) {
      ASSERT_TRUE(std::isfinite(back)) << value;
      if (codec.spec().format->narrow || codec.name() == "top_k" || codec.spec().format->randomised) continue;
      ASSERT_NEAR(back / value, 1.0, 0.01);
    }
  }
}

TEST_P(Conformance, ZerosStayZeros) {
  const Floats zeros(300, 0.0F);
  EXPECT_EQ(codec.round_trip(zeros, {300}), zeros);
}

TEST_P(Conformance, MinusZeroIsSentAsZeroIs) {
  if (codec.spec().format->options.empty()) GTEST_SKIP() << "keeps the sign of a zero";
  Floats plus = normal_floats(300, 8);
  Floats minus = plus;
  for (std::size_t i = 0; i < plus.size(); i += 3) {
    plus[i] = 0.0F;
    minus[i] = -0.0F;
  }
  EXPECT_EQ(codec.encoded(plus, {300}), codec.encoded(minus, {300}));
}

TEST_P(Conformance, AbsmaxIsExact) {
  if (!codec.name().starts_with("int")) GTEST_SKIP() << "not promised";
  for (float top : {3.0F, 0.1F, 1e-40F, kTiny, 3e38F, kLargest, 1.7320508F}) {
    for (float sign : {1.0F, -1.0F}) {
      Floats values = normal_floats(128, 9);
      float most = 0;
      for (float& value : values) value *= 0.1F * top;
      values[77] = sign * top;
      for (float value : values) most = std::max(most, std::fabs(value));
      EXPECT_EQ(codec.round_trip(values, {128})[77], sign * top) << top << " of " << most;
    }
  }
}

TEST_P(Conformance, ScalesWithPowersOfTwo) {
  if (codec.spec().format->narrow) GTEST_SKIP() << "its range is smaller";
  const Floats values = normal_floats(2500, 10);
  const Floats back = codec.round_trip(values, {2500});
  for (int power : {-90, -24, -1, 1, 12, 100}) {
    Floats scaled = values;
    for (float& value : scaled) value = std::ldexp(value, power);
    Floats want = back;
    for (float& value : want) value = std::ldexp(value, power);
    EXPECT_EQ(bits_of(codec.round_trip(scaled, {2500})), bits_of(want)) << "2^" << power;
  }
}

TEST_P(Conformance, ReportsNonFiniteAndSpoilsNoOtherBlock) {
  const Lengths segments{4096, 100};
  const Floats clean = normal_floats(4196, 11);
  Bytes out(static_cast<std::size_t>(codec.wire_bytes(segments)));
  EXPECT_FALSE(codec.encode(clean, segments, out).non_finite);
  const Floats clean_back = codec.round_trip(clean, segments);
  for (float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (std::int64_t at : {0, 2047, 2048, 4095, 4096, 4195}) {
      Floats values = clean;
      values[at] = bad;
      EXPECT_TRUE(codec.encode(values, segments, out).non_finite) << bad << " at " << at;
      const Floats back = codec.decoded(out, segments, values.size());
      for (const auto& [first, count] : blocks(segments)) {
        if (at >= first && at < first + count) continue;
        for (std::int64_t i = first; i < first + count; ++i) ASSERT_EQ(back[i], clean_back[i]) << "element " << i;
      }
    }
  }
}

TEST_P(Conformance, CuttingElsewhereAtABlockBorderChangesNoBit) {
  const Floats values = normal_floats(6 * 2048 + 77, 12);
  const auto whole_length = static_cast<std::int64_t>(values.size());
  const Bytes whole = codec.encoded(values, {whole_length});
  for (std::int64_t cut : {2048, 4096, 5 * 2048, 6 * 2048}) {
    EXPECT_EQ(codec.encoded(values, {cut, whole_length - cut}), whole) << "as two segments, cut at " << cut;
    Bytes joined = codec.encoded(std::span(values).first(cut), {cut});
    const Bytes rest = codec.encoded(std::span(values).subspan(cut), {whole_length - cut});
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, whole) << "as two calls, cut at " << cut;
  }
}

TEST_P(Conformance, BadScalesAreCorrupt) {
  if (!codec.spec().format->scaled) GTEST_SKIP() << "has no scale";
  const Floats values = normal_floats(2048 + 50, 13);
  const Lengths segments{2048, 50};
  const Bytes good = codec.encoded(values, segments);
  const std::size_t last =
      good.size() - codec.wire_bytes({50 % codec.spec().block == 0 ? codec.spec().block : 50 % codec.spec().block});
  for (float bad : {kNan, kInfinity, -kInfinity, -1.0F, -0.0F}) {
    for (std::size_t at : {std::size_t{0}, last}) {
      Bytes bytes = good;
      std::memcpy(bytes.data() + at, &bad, sizeof(bad));
      try {
        codec.decoded(bytes, segments, values.size());
        FAIL() << "accepted scale " << bad << " at byte " << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      }
    }
  }
}

TEST_P(Conformance, AnyBytesDecodeOrAreCorrupt) {
  std::mt19937 generator(14);
  const Lengths segments{300, 2049, 1};
  for (int round = 0; round < 200; ++round) {
    Bytes bytes(static_cast<std::size_t>(codec.wire_bytes(segments)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
    try {
      codec.decoded(bytes, segments, 2350);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
}

THINWIRE_FOR_EVERY_CODEC(Conformance);

template <class Call>
void expect_error(ErrorCode code, Call call) {
  try {
    call();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
  }
}

TEST(Sizes, ThatDoNotFitAreRefused) {
  for (const std::string& text : codec_texts()) {
    const auto codec = make_codec(text);
    const Lengths segments{100};
    const Floats values(100, 1.0F);
    Floats back(100);
    Bytes bytes(static_cast<std::size_t>(codec->wire_bytes(segments)));
    codec->encode(values, segments, bytes);
    expect_error(ErrorCode::kCorrupt, [&] { codec->decode(std::span(bytes).first(bytes.size() - 1), segments, back); });
    expect_error(ErrorCode::kCorrupt, [&] { codec->decode({}, segments, back); });
    expect_error(ErrorCode::kInvalidArgument, [&] { codec->encode(values, segments, std::span(bytes).first(3)); });
    expect_error(ErrorCode::kInvalidArgument, [&] { codec->encode(values, Lengths{99}, bytes); });
    expect_error(ErrorCode::kInvalidArgument, [&] { codec->wire_bytes(Lengths{-1}); });
  }
}

}  // namespace
}  // namespace thinwire::codec
