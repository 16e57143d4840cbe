// The fused loops: against the reference, bit for bit; what a mask means; what error feedback guarantees.
#include <cmath>
#include <numeric>

#include "tests/codec/implementations.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/codec/error_feedback.hpp"
#include "thinwire/codec/half.hpp"

namespace thinwire::codec {
namespace {

using Mask = std::vector<std::uint64_t>;

Mask random_mask(std::size_t elements, unsigned seed) {
  std::mt19937_64 generator(seed);
  Mask mask((elements + 63) / 64);
  for (auto& word : mask) word = generator() | generator();
  return mask;
}

bool active(const Mask& mask, std::size_t i) {
  return mask.empty() || ((mask[i / 64] >> (i % 64)) & 1) == 1;
}

Lengths cut_in_pieces(std::int64_t elements) {
  if (elements < 10) return {elements};
  return {elements / 3, 0, 1, elements - elements / 3 - 1};
}

// Everything the four loops write, for one input.
struct Outcome {
  std::vector<Bytes> bytes;
  std::vector<std::vector<std::uint32_t>> floats;
  std::vector<bool> flags;
  bool operator==(const Outcome&) const = default;
};

Outcome run_all(const Subject& codec, std::int64_t elements, const Mask& mask, float spread) {
  const Lengths segments = cut_in_pieces(elements);
  const auto size = static_cast<std::size_t>(codec.wire_bytes(segments));
  const Floats x = normal_floats(elements, 1, spread);
  const Floats m = normal_floats(elements, 2, spread);
  const Floats e = normal_floats(elements, 3, spread);
  Outcome outcome;
  Bytes feedback(size), momentum(size), reduced(size);
  Floats feedback_residual(x.size()), momentum_residual(x.size()), server_residual(x.size()), mean(x.size());
  outcome.flags.push_back(codec.encode_feedback({x, 0.37F, e, 11}, segments, feedback, feedback_residual).non_finite);
  const MomentumReport report =
      codec.momentum_encode({x, m, e, 0.9F, 0.37F, mask, 12}, segments, momentum, momentum_residual);
  outcome.flags.push_back(report.woke);
  outcome.flags.push_back(report.non_finite);
  const Bytes third = codec.encoded(m, segments);
  const std::vector<std::span<const std::byte>> chunks{feedback, momentum, third};
  outcome.flags.push_back(
      codec.accumulate_decode({chunks, mask, 13}, e, segments, reduced, server_residual).non_finite);
  codec.accumulate({chunks, mask}, segments, mean);
  Floats parameter = x;
  Floats agreed = m;
  Floats sqrt_v = normal_floats(elements, 4);
  for (float& value : sqrt_v) value = std::fabs(value);
  codec.decode_update(reduced, segments, {parameter, agreed, sqrt_v, mask}, {1e-3F, 1e-8F, 0.1F});
  outcome.bytes = {feedback, momentum, reduced};
  for (const Floats& values : {feedback_residual, momentum_residual, server_residual, mean, parameter, agreed})
    outcome.floats.push_back(bits_of(values));
  return outcome;
}

class AgainstOracle : public EveryCodec {
 protected:
  const Subject oracle{std::get<0>(GetParam()), true};
};

TEST_P(AgainstOracle, BitForBit) {
  for (std::int64_t d : sampled_lengths()) {
    const Mask mask = d % 2 == 0 ? Mask{} : random_mask(static_cast<std::size_t>(d), static_cast<unsigned>(d));
    const std::vector<float> spreads = d % 5 == 0 ? std::vector<float>{1.0F, 1e-42F, 1e37F} : std::vector<float>{1.0F};
    for (float spread : spreads)
      ASSERT_TRUE(run_all(codec, d, mask, spread) == run_all(oracle, d, mask, spread))
          << d << " elements, spread " << spread;
  }
}

// A span of bf16 or fp16 gives what its values as fp32 give; `Half` holds any bit pattern, NaN and infinity too.
template <class Half>
void expect_widened(const Subject& codec, const Subject& oracle, unsigned seed, std::uint16_t bits_mask) {
  std::mt19937 generator(seed);
  for (std::int64_t d : {1, 3, 15, 16, 17, 100, 2047, 2048, 2049, 5000}) {
    std::vector<Half> x(static_cast<std::size_t>(d));
    for (Half& half : x) half.bits = static_cast<std::uint16_t>(generator()) & bits_mask;
    const Lengths segments = cut_in_pieces(d);
    const Floats m = normal_floats(d, seed + 1);
    Bytes bytes[2][3];
    std::vector<std::uint32_t> residuals[2][2];
    for (const int who : {0, 1}) {
      const Subject& subject = who == 0 ? codec : oracle;
      for (Bytes& one : bytes[who]) one.resize(static_cast<std::size_t>(codec.wire_bytes(segments)));
      Floats residual(x.size());
      subject.encode(x, segments, bytes[who][0], 5);
      subject.encode_feedback({x, 0.7F, m, 6}, segments, bytes[who][1], residual);
      residuals[who][0] = bits_of(residual);
      subject.momentum_encode({x, m, m, 0.9F, 0.7F, {}, 7}, segments, bytes[who][2], residual);
      residuals[who][1] = bits_of(residual);
    }
    for (const int i : {0, 1, 2}) ASSERT_EQ(bytes[0][i], bytes[1][i]) << d << " elements, function " << i;
    for (const int i : {0, 1}) ASSERT_EQ(residuals[0][i], residuals[1][i]) << d << " elements, function " << i;
  }
}

TEST_P(AgainstOracle, BitForBitFromHalves) {
  expect_widened<Bf16>(codec, oracle, 60, 0xBF7F);  // finite and of moderate size
  expect_widened<Fp16>(codec, oracle, 61, 0xBBFF);  // finite, subnormals too
}
THINWIRE_FOR_EVERY_CODEC(AgainstOracle);

// Every 16-bit pattern, on every implementation.
TEST(Widening, IsTheScalarOneForEveryPattern) {
  constexpr std::int64_t kPatterns = 65536;
  std::vector<std::uint16_t> all(kPatterns);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  for (const std::string& name : implementations()) {
    choose_implementation(name);
    Floats wide(kUnitElements);
    for (std::int64_t at = 0; at < kPatterns; at += kUnitElements) {
      tile_loops().widen_bf16(&all[at], wide.data(), kUnitElements);
      for (std::int64_t i = 0; i < kUnitElements; ++i)
        ASSERT_EQ(to_bits(wide[i]), to_bits(from_bf16(all[at + i]))) << name << ", bf16 pattern " << at + i;
      tile_loops().widen_fp16(&all[at], wide.data(), kUnitElements);
      for (std::int64_t i = 0; i < kUnitElements; ++i)
        ASSERT_EQ(to_bits(wide[i]), to_bits(from_fp16(all[at + i]))) << name << ", fp16 pattern " << at + i;
    }
  }
}

class Fused : public EveryCodec {};

TEST_P(Fused, ResidualsTelescope) {
  const std::int64_t d = 2500;
  const Lengths segments{d};
  ErrorFeedback feedback(d);
  std::vector<double> sent(d), wanted(d);
  Bytes bytes(static_cast<std::size_t>(codec.wire_bytes(segments)));
  double largest = 0;
  for (unsigned step = 0; step < 50; ++step) {
    const Floats x = normal_floats(d, 100 + step);
    codec.encode_feedback({x, 0.5F, feedback.committed(), step}, segments, bytes, feedback.pending());
    feedback.commit();
    const Floats y = codec.decoded(bytes, segments, x.size());
    for (std::int64_t i = 0; i < d; ++i) {
      sent[i] += y[i];
      wanted[i] += 0.5 * x[i];
      largest = std::max(largest, std::fabs(wanted[i]));
    }
  }
  for (std::int64_t i = 0; i < d; ++i)
    ASSERT_NEAR(sent[i] + feedback.committed()[i], wanted[i], 50 * 1e-6 * (1 + largest)) << "element " << i;
}

TEST_P(Fused, AConstantArrivesInTheTimeAverage) {
  const Lengths segments{300};
  Floats x = normal_floats(300, 20);
  Floats residual(300), sum(300);
  Bytes bytes(static_cast<std::size_t>(codec.wire_bytes(segments)));
  constexpr int kSteps = 4000;  // mean_abs catches up slowly with elements far above the mean
  for (int step = 0; step < kSteps; ++step) {
    codec.encode_feedback({x, 1.0F, residual, static_cast<std::uint64_t>(step)}, segments, bytes, residual);
    const Floats y = codec.decoded(bytes, segments, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += y[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(sum[i] / kSteps, x[i], 0.1) << "element " << i;
}

TEST_P(Fused, TheNewResidualMayReplaceTheInput) {
  for (std::int64_t d : {1, 129, 2048, 5000}) {
    const Lengths segments{d};
    const Floats x = normal_floats(d, 21);
    const Floats e = normal_floats(d, 22);
    Floats apart(x.size());
    Floats in_place = x;
    Bytes bytes(static_cast<std::size_t>(codec.wire_bytes(segments)));
    codec.encode_feedback({x, 2.0F, e}, segments, bytes, apart);
    codec.encode_feedback({in_place, 2.0F, e}, segments, bytes, in_place);
    EXPECT_EQ(bits_of(in_place), bits_of(apart));
  }
}

TEST_P(Fused, AnEmptyMaskIsAFullOne) {
  for (std::int64_t d : {1, 64, 100, 2047, 4097}) {
    const Mask all(static_cast<std::size_t>(d + 63) / 64, ~std::uint64_t{0});
    EXPECT_TRUE(run_all(codec, d, {}, 1.0F) == run_all(codec, d, all, 1.0F)) << d;
  }
}

TEST_P(Fused, ElementsOutsideTheMaskInfluenceNothing) {
  const std::int64_t d = 3000;
  const Lengths segments{1000, 2000};
  const Mask mask = random_mask(d, 30);
  const Floats e = normal_floats(d, 31);
  Floats g = normal_floats(d, 32);
  Floats m = normal_floats(d, 33);
  for (std::size_t i = 0; i < g.size(); ++i)
    if (!active(mask, i)) g[i] = 0;
  Bytes first(static_cast<std::size_t>(codec.wire_bytes(segments)));
  Bytes second = first;
  Floats residual(g.size());
  EXPECT_FALSE(codec.momentum_encode({g, m, e, 0.9F, 1.0F, mask}, segments, first, residual).woke);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (active(mask, i)) continue;
    EXPECT_EQ(residual[i], 0.0F);
    m[i] = 1e20F;
    g[i] = i % 2 == 0 ? 1e-45F : 1e30F;
  }
  const MomentumReport report = codec.momentum_encode({g, m, e, 0.9F, 1.0F, mask}, segments, second, residual);
  EXPECT_TRUE(report.woke);
  EXPECT_FALSE(report.non_finite);
  EXPECT_EQ(first, second);
}

TEST_P(Fused, OnlyActiveElementsAreCountedInTheScale) {
  if (codec.name() != "one_bit") GTEST_SKIP() << "its scale is no mean";
  const Floats g(64, 0.0F);
  Floats m(64, 0.0F);
  m[3] = m[5] = m[40] = -2.0F;
  const Mask mask{(1ULL << 3) | (1ULL << 5) | (1ULL << 40)};
  Bytes bytes(static_cast<std::size_t>(codec.wire_bytes({64})));
  Floats residual(64, 9.0F);
  codec.momentum_encode({g, m, Floats(64), 1.0F, 1.0F, mask}, {64}, bytes, residual);
  for (std::size_t i : {3, 5, 40}) EXPECT_EQ(codec.decoded(bytes, {64}, 64)[i], -2.0F);
  EXPECT_EQ(residual, Floats(64, 0.0F));
}

TEST_P(Fused, ANanOutsideTheMaskIsReported) {
  Floats g(100, 0.0F);
  g[70] = std::nanf("");
  const Mask mask{~std::uint64_t{0}, 1};
  Bytes bytes(static_cast<std::size_t>(codec.wire_bytes({100})));
  Floats residual(100);
  const MomentumReport report =
      codec.momentum_encode({g, Floats(100, 1.0F), Floats(100), 0.9F, 1.0F, mask}, {100}, bytes, residual);
  EXPECT_TRUE(report.non_finite);
  EXPECT_TRUE(report.woke);
}

TEST_P(Fused, UpdateLeavesInactiveParametersUntouched) {
  const std::int64_t d = 2500;
  const Mask mask = random_mask(d, 40);
  const Floats x = normal_floats(d, 41);
  const Floats m = normal_floats(d, 42);
  Floats parameter = x;
  Floats momentum = m;
  const Floats sqrt_v(x.size(), 0.0F);
  const Bytes bytes = codec.encoded(normal_floats(d, 43), {d});
  codec.decode_update(bytes, {d}, {parameter, momentum, sqrt_v, mask}, {0.1F, 1.0F, 0.1F});
  const Floats agreed = codec.decoded(bytes, {d}, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (active(mask, i)) {
      EXPECT_EQ(momentum[i], agreed[i]);
      EXPECT_NEAR(parameter[i], x[i] - 0.1 * (agreed[i] + 0.1 * x[i]), 1e-5);
    } else {
      EXPECT_EQ(momentum[i], m[i]);
      EXPECT_EQ(parameter[i], x[i]);
    }
  }
}

TEST_P(Fused, TheMeanIsTheMeanAndTheServerResidualTelescopes) {
  const std::int64_t d = 2300;
  const Lengths segments{d};
  const Bytes one = codec.encoded(normal_floats(d, 50), segments);
  const Bytes two = codec.encoded(normal_floats(d, 51), segments);
  const std::vector<std::span<const std::byte>> chunks{one, two};
  const Floats s = normal_floats(d, 52);
  Floats new_s(s.size()), mean(s.size());
  Bytes out(one.size());
  codec.accumulate_decode({chunks, {}}, s, segments, out, new_s);
  codec.accumulate({chunks, {}}, segments, mean);
  const Floats a = codec.decoded(one, segments, s.size());
  const Floats b = codec.decoded(two, segments, s.size());
  const Floats y = codec.decoded(out, segments, s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    EXPECT_NEAR(mean[i], (double(a[i]) + b[i]) / 2, 1e-6);
    EXPECT_NEAR(double(y[i]) + new_s[i], (double(a[i]) + b[i]) / 2 + s[i], 1e-5);
  }
}
THINWIRE_FOR_EVERY_CODEC(Fused);

// The widespread wrong optimizer: sends sign(g) + e without a scale and keeps g - what it sent. On a constant 0.1 it
// overshoots 5.5 times; ours must not, and the telescoping sum must tell them apart.
TEST(ConstantGradient, OurFeedbackKeepsToItWhereTheArticlesDoesNot) {
  constexpr int kSteps = 20;
  double article_sent = 0;
  double article_error = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double out = 1.0 + article_error;
    article_error = 0.1 - out;
    article_sent += out;
  }
  const auto codec = make_codec("one_bit");
  const Floats g(100, 0.1F);
  Floats residual(100);
  Bytes bytes(static_cast<std::size_t>(codec->wire_bytes(Lengths{100})));
  Floats y(100);
  double ours_sent = 0;
  for (int step = 0; step < kSteps; ++step) {
    encode_feedback(*codec, {g, 1.0F, residual}, Lengths{100}, bytes, residual);
    codec->decode(bytes, Lengths{100}, y);
    ours_sent += y[17];
  }
  const double wanted = 0.1 * kSteps;
  EXPECT_NEAR(article_sent / wanted, 5.5, 0.01);
  EXPECT_GT(std::fabs(article_sent + article_error - wanted), 1.0) << "the telescoping sum must reject the article's";
  EXPECT_NEAR(ours_sent + residual[17], wanted, 1e-5);
  EXPECT_NEAR(ours_sent / wanted, 1.0, 1e-4);
}

TEST(FusedSizes, AreChecked) {
  const auto codec = make_codec("int8");
  const Floats x(100);
  Floats out(100);
  Bytes bytes(static_cast<std::size_t>(codec->wire_bytes(Lengths{100})));
  const Mask small(1);
  EXPECT_THROW(encode_feedback(*codec, {x, 1, std::span(x).first(99)}, Lengths{100}, bytes, out), Error);
  EXPECT_THROW(momentum_encode(*codec, {x, x, x, 0.9F, 1.0F, small}, Lengths{100}, bytes, out), Error);
  EXPECT_THROW(accumulate_decode(*codec, {{}, {}}, x, Lengths{100}, bytes, out), Error);
  const std::vector<std::span<const std::byte>> short_chunk{std::span(bytes).first(10)};
  try {
    accumulate(*codec, {short_chunk, {}}, Lengths{100}, out);
    FAIL() << "accepted a short chunk";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace thinwire::codec
