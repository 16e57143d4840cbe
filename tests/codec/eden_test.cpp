// eden against its theory: unbiased, and the variance that the paper proves for large blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/codec/implementations.hpp"
#include "thinwire/codec/formats/eden.hpp"

namespace thinwire::codec {
namespace {

// Distortion of the Lloyd-Max quantiser of N(0, 1) (Max, 1960), by bits.
constexpr double kDistortion[] = {0.363380, 0.117482, 0.034548, 0.009497};

Floats heavy_tailed(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::student_t_distribution<float> student(3.0F);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = student(generator);
  return values;
}

// Of the estimates of one block over `seeds` seeds: mean and variance by element, mean squared error over |x|^2.
struct Estimates {
  std::vector<double> mean, variance;
  double error = 0;
};

Estimates estimates_of(const std::string& text, const Floats& x, int seeds) {
  const auto codec = make_codec(text);
  const Lengths segments{static_cast<std::int64_t>(x.size())};
  Bytes bytes(static_cast<std::size_t>(codec->wire_bytes(segments)));
  Floats back(x.size());
  std::vector<double> sum(x.size()), square(x.size());
  double norm2 = 0;
  for (double value : x) norm2 += value * value;
  Estimates all;
  for (int seed = 0; seed < seeds; ++seed) {
    codec->encode(x, segments, bytes, static_cast<std::uint64_t>(seed));
    codec->decode(bytes, segments, back);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double off = static_cast<double>(back[i]) - x[i];
      sum[i] += off;
      square[i] += off * off;
      all.error += off * off / norm2 / seeds;
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    all.mean.push_back(sum[i] / seeds);
    all.variance.push_back(square[i] / seeds - all.mean[i] * all.mean[i]);
  }
  return all;
}

TEST(Eden, IsUnbiased) {
  constexpr int kSeeds = 10'000;
  for (const char* text : {"eden:bits=1", "eden:bits=2"}) {
    for (const Floats& x : {normal_floats(2048, 1), heavy_tailed(2048, 2)}) {
      const Estimates all = estimates_of(text, x, kSeeds);
      double chi2 = 0;  // of as many degrees of freedom as elements, when there is no bias
      double along = 0;
      double along_variance = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        chi2 += all.mean[i] * all.mean[i] / (all.variance[i] / kSeeds);
        along += all.mean[i] * x[i];
        along_variance += all.variance[i] * x[i] * x[i] / kSeeds;
      }
      const auto n = static_cast<double>(x.size());
      EXPECT_LT(std::fabs(chi2 - n), 4 * std::sqrt(2 * n)) << text;
      EXPECT_LT(std::fabs(along), 4 * std::sqrt(along_variance)) << text << ", shrunk or stretched";
    }
  }
}

TEST(Eden, LeastErrorShrinks) {
  const Floats x = normal_floats(2048, 3);
  const Estimates all = estimates_of("eden:bits=1,scale=least_error", x, 500);
  double along = 0;
  double norm2 = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    along += (all.mean[i] + x[i]) * x[i];
    norm2 += static_cast<double>(x[i]) * x[i];
  }
  EXPECT_NEAR(along / norm2, 2 / std::numbers::pi, 0.01);
}

TEST(Eden, HasTheVarianceOfTheTheory) {
  for (const Floats& x : {normal_floats(2048, 4), heavy_tailed(2048, 5)}) {
    const double unbiased = estimates_of("eden:bits=1", x, 1000).error;
    const double least = estimates_of("eden:bits=1,scale=least_error", x, 1000).error;
    EXPECT_NEAR(unbiased / (std::numbers::pi / 2 - 1), 1, 0.02);
    EXPECT_NEAR(least / (1 - 2 / std::numbers::pi), 1, 0.02);
  }
}

TEST(Eden, HasTheDistortionOfItsBits) {
  const Floats x = heavy_tailed(2048, 6);
  for (int bits = 1; bits <= 4; ++bits) {
    const std::string text = "eden:bits=" + std::to_string(bits);
    const double d = kDistortion[bits - 1];
    EXPECT_NEAR(estimates_of(text, x, 500).error / (d / (1 - d)), 1, 0.02) << text;
    EXPECT_NEAR(estimates_of(text + ",scale=least_error", x, 500).error / d, 1, 0.02) << text;
  }
}

TEST(Eden, BlocksOfAnyLengthAreRotatedAsAWhole) {
  for (const std::int64_t n : {1500, 2047, 1025, 700}) {
    Floats one_hot(static_cast<std::size_t>(n), 0.0F);  // what is not reached by the rotation would come back as it was
    one_hot[static_cast<std::size_t>(n) - 1] = 1.0F;
    one_hot[0] = 1.0F;
    const double error = estimates_of("eden:bits=1", heavy_tailed(n, 7), 500).error;
    EXPECT_NEAR(error / (std::numbers::pi / 2 - 1), 1, 0.06) << n;
    EXPECT_LT(estimates_of("eden:bits=4", one_hot, 100).error, 0.05) << n;
  }
}

TEST(Eden, CentroidsAreTheMeansOfTheirCells) {
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); };
  const auto tail = [](double x) { return std::erfc(x / std::numbers::sqrt2) / 2; };
  for (std::size_t bits = 0; bits < kEdenLevels.size(); ++bits) {
    const int count = 1 << bits;
    for (int k = 0; k < count; ++k) {
      const double low = k == 0 ? 0 : kEdenLevels[bits].threshold[k - 1];
      const double high = k + 1 == count ? 40 : kEdenLevels[bits].threshold[k];
      const double mean = (density(low) - density(high)) / (tail(low) - tail(high));
      EXPECT_NEAR(kEdenLevels[bits].centroid[k], mean, 1e-6);
      if (k == 0) continue;
      EXPECT_NEAR(low, (kEdenLevels[bits].centroid[k - 1] + kEdenLevels[bits].centroid[k]) / 2, 1e-6);
    }
  }
}

}  // namespace
}  // namespace thinwire::codec
