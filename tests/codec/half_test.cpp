// The conversions between fp32 and the two 16-bit floats, against arithmetic in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "thinwire/codec/half.hpp"

namespace thinwire::codec {
namespace {

struct Halves {
  const char* name;
  std::uint16_t (*to)(float);
  float (*from)(std::uint16_t);
  int fraction_bits;
  int least_exponent;  // of a normal number
  double largest;
};

class Half : public testing::TestWithParam<Halves> {
 protected:
  // To the nearest multiple of the unit in the last place, ties to even, saturating: by definition, in double.
  double rounded(double value) const {
    if (value == 0) return value;
    const Halves& half = GetParam();
    const int exponent = std::max(std::ilogb(value), half.least_exponent);
    const double unit = std::ldexp(1.0, exponent - half.fraction_bits);
    const double result = std::nearbyint(value / unit) * unit;
    return std::fabs(result) > half.largest ? std::copysign(half.largest, value) : result;
  }
};

TEST_P(Half, RoundsToNearestEvenAndSaturates) {
  std::mt19937 generator(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = from_bits(static_cast<std::uint32_t>(generator()));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(static_cast<double>(GetParam().from(GetParam().to(value))), rounded(value)) << value;
  }
}

TEST_P(Half, EveryPatternComesBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = GetParam().from(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(GetParam().to(value), bits);
  }
}

TEST_P(Half, TiesGoToTheEvenNeighbour) {
  for (unsigned bits = 0x0001; bits < 0x7000; bits += 7) {
    const double low = GetParam().from(static_cast<std::uint16_t>(bits));
    const double high = GetParam().from(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    ASSERT_EQ(GetParam().to(middle), bits + bits % 2);
    ASSERT_EQ(GetParam().to(-middle), (bits + bits % 2) | 0x8000U);
  }
}

TEST_P(Half, InfinityStaysAndEveryNanIsQuiet) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(GetParam().from(GetParam().to(kInfinity)), kInfinity);
  EXPECT_EQ(GetParam().from(GetParam().to(-kInfinity)), -kInfinity);
  for (std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFFC00000U, 0xFF800001U})
    EXPECT_TRUE(std::isnan(GetParam().from(GetParam().to(from_bits(bits)))));
}

INSTANTIATE_TEST_SUITE_P(All, Half,
                         testing::Values(Halves{"bf16", to_bf16, from_bf16, 7, -126, 0x1.FEp127},
                                         Halves{"fp16", to_fp16, from_fp16, 10, -14, 65504.0}),
                         [](const auto& half) { return half.param.name; });

}  // namespace
}  // namespace thinwire::codec
