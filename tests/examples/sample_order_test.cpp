#include "examples/data/sample_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace examples {
namespace {

using Draw = std::vector<std::int64_t> (*)(const BatchPlace&, std::int64_t, std::int64_t, std::int64_t);

std::vector<std::int64_t> joined(Draw how, int ranks, std::int64_t joined_batch, std::int64_t step) {
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto mine = how({.seed = 3, .rank = rank, .size = ranks, .micro_batch = joined_batch / ranks}, step, 0, 1000);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

TEST(SampleOrder, TheJoinedBatchDoesNotDependOnTheNumberOfRanks) {
  for (const Draw how : {Draw{draw}, Draw{draw_by_epochs}})
    for (std::int64_t step : {0, 1, 7, 500})
      for (int ranks : {2, 3, 4}) EXPECT_EQ(joined(how, ranks, 24, step), joined(how, 1, 24, step)) << ranks;
}

TEST(SampleOrder, StepsMicroBatchesAndSeedsDiffer) {
  const BatchPlace place{.seed = 3, .rank = 0, .size = 1, .micro_batch = 16, .micro_batches = 2};
  BatchPlace other = place;
  other.seed = 4;
  const auto first = draw(place, 0, 0, 1 << 20);
  EXPECT_NE(first, draw(place, 1, 0, 1 << 20));
  EXPECT_NE(first, draw(place, 0, 1, 1 << 20));
  EXPECT_NE(first, draw(other, 0, 0, 1 << 20));
}

TEST(SampleOrder, AnEpochHasEverySampleOnce) {
  constexpr std::int64_t kPopulation = 120;
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> seen;
    for (std::int64_t step = 5 * epoch; step < 5 * epoch + 5; ++step)
      for (std::int64_t micro = 0; micro < 2; ++micro)
        for (int rank = 0; rank < 3; ++rank)
          for (const std::int64_t position :
               draw_by_epochs({.seed = 9, .rank = rank, .size = 3, .micro_batch = 4, .micro_batches = 2}, step, micro,
                              kPopulation))
            seen.push_back(position);
    epochs.push_back(seen);
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> every(kPopulation);
    std::iota(every.begin(), every.end(), 0);
    EXPECT_EQ(seen, every);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(SampleOrder, PermutedIsOneToOneForEverySize) {
  for (std::int64_t population = 1; population < 300; ++population) {
    std::vector<bool> hit(population, false);
    for (std::int64_t index = 0; index < population; ++index) {
      const std::int64_t place = permuted(index, population, 77);
      ASSERT_GE(place, 0);
      ASSERT_LT(place, population);
      ASSERT_FALSE(hit[place]) << population;
      hit[place] = true;
    }
  }
}

}  // namespace
}  // namespace examples
