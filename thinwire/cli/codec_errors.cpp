#include "thinwire/cli/codec_errors.hpp"

#include <cmath>
#include <numbers>

#include "thinwire/base/error.hpp"
#include "thinwire/base/rng.hpp"
#include "thinwire/cli/raw_floats.hpp"

namespace thinwire::cli {
namespace {

// In (0, 1).
double uniform(std::uint64_t counter) {
  return (static_cast<double>(mix64(counter) >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller.
double normal(std::uint64_t counter) {
  return std::sqrt(-2 * std::log(uniform(2 * counter))) * std::cos(2 * std::numbers::pi * uniform(2 * counter + 1));
}

template <class Draw>
std::vector<float> values(std::int64_t count, Draw draw) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(draw(i));
  return all;
}

}  // namespace

std::vector<float> normal_values(std::int64_t count) {
  return values(count, [](std::uint64_t i) { return normal(i); });
}

std::vector<float> student_t_values(std::int64_t count) {
  constexpr int kDegrees = 3;
  return values(count, [](std::uint64_t i) {
    double chi2 = 0;
    for (int k = 1; k <= kDegrees; ++k) chi2 += std::pow(normal((kDegrees + 1) * i + k), 2);
    return normal((kDegrees + 1) * i) / std::sqrt(chi2 / kDegrees);
  });
}

std::vector<float> sparse_values(std::int64_t count) {
  return values(count, [](std::uint64_t i) { return uniform(~i) < 0.01 ? normal(i) : 0.0; });
}

std::vector<float> read_gradients(const std::string& path) {
  const RawFloats file(path, codec::Dtype::kFp32);
  std::vector<float> all(file.values().fp32(), file.values().fp32() + file.values().size());
  for (const float value : all) {
    if (std::isfinite(value)) continue;
    fail(ErrorCode::kCorrupt, {"cli::read_gradients", path, "a NaN or an infinity", "finite fp32 values", ""});
  }
  return all;
}

double relative_error(const codec::Codec& codec, const std::vector<float>& x) {
  const std::vector<std::int64_t> segments{static_cast<std::int64_t>(x.size())};
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec.wire_bytes(segments)));
  std::vector<float> back(x.size());
  codec.encode(x, segments, bytes, 1);
  codec.decode(bytes, segments, back);
  double lost = 0;
  double whole = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    lost += std::pow(static_cast<double>(x[i]) - back[i], 2);
    whole += std::pow(static_cast<double>(x[i]), 2);
  }
  return whole == 0 ? 0 : std::sqrt(lost / whole);
}

}  // namespace thinwire::cli
