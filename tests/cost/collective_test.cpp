#include "thinwire/cost/collective.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "thinwire/base/error.hpp"

namespace thinwire::cost {
namespace {

constexpr Link kGigabit{.latency_s = 50e-6, .bandwidth_bytes_per_s = 125e6};

// An independent oracle: moves chunks around a ring until every rank holds every rank's contribution to every chunk,
// and counts what rank 0 sends on the way.
std::int64_t bytes_sent_until_all_reduced(int ranks, std::int64_t bytes) {
  using Contributors = std::set<int>;
  std::vector<std::vector<Contributors>> held(ranks, std::vector<Contributors>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    for (auto& chunk : held[rank]) chunk = {rank};
  std::int64_t sent = 0;
  auto complete = [&] {
    for (auto& chunks : held)
      for (auto& chunk : chunks)
        if (static_cast<int>(chunk.size()) < ranks) return false;
    return true;
  };
  for (int step = 0; !complete(); ++step) {
    auto next = held;
    for (int rank = 0; rank < ranks; ++rank) {
      const int chunk = ((rank - step) % ranks + ranks) % ranks;
      next[(rank + 1) % ranks][chunk].merge(Contributors(held[rank][chunk]));
    }
    held = std::move(next);
    sent += (bytes + ranks - 1) / ranks;
  }
  return sent;
}

TEST(RingAllReduce, SendsWhatMovingTheChunksSends) {
  for (int ranks : {1, 2, 3, 8, 13})
    for (std::int64_t bytes : {0, 1, 7, 4096, 1 << 25})
      EXPECT_EQ(ring_all_reduce(ranks, bytes, kGigabit).sent_bytes, bytes_sent_until_all_reduced(ranks, bytes))
          << ranks << " ranks, " << bytes << " bytes";
}

TEST(RingAllReduce, CutsBetweenElements) {
  EXPECT_EQ(ring_all_reduce(3, 40, kGigabit, 4).sent_bytes, 4 * 16) << "10 floats in chunks of 4";
  EXPECT_EQ(ring_all_reduce(2, 12, kGigabit, 4).sent_bytes, 2 * 8);
}

TEST(RingAllReduce, OneRankCostsNothing) {
  const Cost cost = ring_all_reduce(1, 1 << 20, kGigabit);
  EXPECT_EQ(cost.sent_bytes, 0);
  EXPECT_EQ(cost.seconds, 0.0);
}

TEST(RingAllReduce, RefusesZeroRanksAndSaysWhatItGot) {
  try {
    ring_all_reduce(0, 1, kGigabit);
    FAIL() << "accepted 0 ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[cost::ring_all_reduce] number of ranks; got 0, want at least 1");
  }
}

TEST(RingAllReduce, TakesLatencyAndBandwidth) {
  EXPECT_DOUBLE_EQ(ring_all_reduce(2, 250'000'000, kGigabit).seconds, 2 * 50e-6 + 2.0);
}

// Delivers S bytes of every rank to every other one, message by message.
TEST(AllGather, SendsItsOwnToEveryOtherRank) {
  for (int ranks : {1, 2, 5}) {
    std::int64_t sent = 0;
    for (int to = 1; to < ranks; ++to) sent += 777;
    EXPECT_EQ(all_gather(ranks, 777, kGigabit).sent_bytes, sent);
  }
}

TEST(ReduceScatter, SendsEveryPartButItsOwn) {
  EXPECT_EQ(reduce_scatter(4, 400, kGigabit).sent_bytes, 300);
  EXPECT_EQ(reduce_scatter(1, 400, kGigabit).sent_bytes, 0);
  EXPECT_THROW(reduce_scatter(3, 400, kGigabit), Error);
}

TEST(AllToAll, SendsTheSplitsOfTheOthers) {
  EXPECT_EQ(all_to_all(1, {10, 200, 0, 3000}, kGigabit).sent_bytes, 3010);
  EXPECT_EQ(all_to_all(0, {10}, kGigabit).sent_bytes, 0);
  EXPECT_THROW(all_to_all(2, {1, 2}, kGigabit), Error);
  EXPECT_THROW(all_to_all(0, {}, kGigabit), Error);
  EXPECT_THROW(all_to_all(0, {1, -2}, kGigabit), Error);
}

TEST(Broadcast, IsCountedAtTheRootOnly) {
  EXPECT_EQ(broadcast(4, true, 100, kGigabit).sent_bytes, 100);
  EXPECT_EQ(broadcast(4, false, 100, kGigabit).sent_bytes, 0);
  EXPECT_EQ(broadcast(1, true, 100, kGigabit).sent_bytes, 0);
}

}  // namespace
}  // namespace thinwire::cost
