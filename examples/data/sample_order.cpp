#include "examples/data/sample_order.hpp"

#include <bit>

#include "thinwire/base/rng.hpp"

namespace examples {
namespace {

using thinwire::mix64;

// Number, in the joined sequence of all steps and ranks, of the first sample of this micro-batch.
std::int64_t first_sample(const BatchPlace& place, std::int64_t step, std::int64_t micro) {
  const std::int64_t joined = (step * place.micro_batches + micro) * place.size + place.rank;
  return joined * place.micro_batch;
}

// A Feistel network over 2 * half_bits bits: a bijection whatever the round function is.
std::uint64_t feistel(std::uint64_t value, int half_bits, std::uint64_t key) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t next = left ^ (mix64(key + 4 * right + round) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

std::vector<std::int64_t> draw(const BatchPlace& place, std::int64_t step, std::int64_t micro,
                               std::int64_t population) {
  const std::int64_t first = first_sample(place, step, micro);
  const std::uint64_t key = mix64(place.seed);
  std::vector<std::int64_t> positions(place.micro_batch);
  for (std::int64_t i = 0; i < place.micro_batch; ++i) {
    const std::uint64_t random = mix64(key + static_cast<std::uint64_t>(first + i));
    positions[i] = static_cast<std::int64_t>(random % static_cast<std::uint64_t>(population));
  }
  return positions;
}

std::vector<std::int64_t> draw_by_epochs(const BatchPlace& place, std::int64_t step, std::int64_t micro,
                                         std::int64_t population) {
  const std::int64_t first = first_sample(place, step, micro);
  std::vector<std::int64_t> positions(place.micro_batch);
  for (std::int64_t i = 0; i < place.micro_batch; ++i) {
    const std::uint64_t epoch = static_cast<std::uint64_t>((first + i) / population);
    positions[i] = permuted((first + i) % population, population, mix64(mix64(place.seed) + epoch));
  }
  return positions;
}

std::int64_t permuted(std::int64_t index, std::int64_t population, std::uint64_t key) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(population));
  const int half_bits = (bits + 1) / 2;
  std::uint64_t value = static_cast<std::uint64_t>(index);
  do {  // walks the cycle of `index` until it is back inside: at most 8 times as many values lie outside
    value = feistel(value, half_bits, key);
  } while (value >= static_cast<std::uint64_t>(population));
  return static_cast<std::int64_t>(value);
}

}  // namespace examples
