#include "thinwire/train/ddp/norm_sketch.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "thinwire/base/rng.hpp"

namespace thinwire::train {
namespace {

constexpr std::int64_t kWord = 64;  // elements that share one word of signs

// Flips the sign bit of each value whose bit in `signs` is set and adds it to its lane.
void add_word(std::uint64_t signs, const float* values, std::int64_t count, float* lanes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t flip = static_cast<std::uint32_t>(signs >> i & 1U) << 31;
    lanes[i] += std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[i]) ^ flip);
  }
}

}  // namespace

void NormSketch::add(int parameter, std::int64_t offset, std::span<const float> values) {
  const std::uint64_t seed = mix64(static_cast<std::uint64_t>(parameter) + 0x5851F42D4C957F2DULL);
  const auto size = static_cast<std::int64_t>(values.size());
  for (std::int64_t at = 0; at < size; at += kWord) {
    const std::int64_t position = offset + at;
    const std::uint64_t signs = mix64(seed ^ static_cast<std::uint64_t>(position / kWord));
    add_word(signs, values.data() + at, std::min(kWord, size - at), lanes_.data() + position % kLanes);
  }
}

double NormSketch::norm() const {
  double sum = 0;
  for (const float lane : lanes_) sum += static_cast<double>(lane) * lane;
  return std::sqrt(sum);
}

}  // namespace thinwire::train
