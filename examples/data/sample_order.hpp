// Which samples a rank takes in a micro-batch, without state and without talking to other ranks.
//
// The joined batch of all ranks in one step is a function of (seed, step) only: n ranks with micro-batch B see together
// exactly what one process with micro-batch n * B sees. That makes runs on different numbers of ranks comparable.
#pragma once

#include <cstdint>
#include <vector>

namespace examples {

struct BatchPlace {
  std::uint64_t seed = 1;
  int rank = 0;
  int size = 1;                    // number of ranks
  std::int64_t micro_batch = 1;    // samples per rank and backward pass
  std::int64_t micro_batches = 1;  // backward passes per optimizer step
};

// Random positions in [0, population), with replacement.
std::vector<std::int64_t> draw(const BatchPlace& place, std::int64_t step, std::int64_t micro, std::int64_t population);

// Every sample once before any sample twice: each pass over the population has an order of its own.
std::vector<std::int64_t> draw_by_epochs(const BatchPlace& place, std::int64_t step, std::int64_t micro,
                                         std::int64_t population);

// Where `index` lands in a permutation of [0, population) that `key` chooses.
// REQUIRES: 0 <= index < population < 2^31.
std::int64_t permuted(std::int64_t index, std::int64_t population, std::uint64_t key);

}  // namespace examples
