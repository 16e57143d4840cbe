// Cutting buckets anew moves residuals and changes no bit of what follows.
#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"

namespace thinwire::train {
namespace {

const std::vector<std::int64_t> kSizes{5000, 3000, 2049, 100, 9000};

std::vector<torch::Tensor> inputs(int step, int rank) {
  std::vector<torch::Tensor> x;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    x.push_back(noise(static_cast<std::uint64_t>(1 + 1000 * step + 100 * rank) + i, {kSizes[i]}));
  }
  return x;
}

// Runs `steps` steps and returns a hash of every y; `between` may cut anew before a step.
std::vector<std::uint64_t> trajectory(int ranks, const std::string& codec, BucketSizes sizes,
                                      const std::function<void(RankExchanges&, int step)>& between) {
  constexpr int kSteps = 6;
  std::vector<std::vector<std::uint64_t>> hashes(ranks);
  on_ranks(ranks, [&](comm::World& world) {
    RankExchanges exchanges(kSizes, world, codec, sizes);
    for (int step = 0; step < kSteps; ++step) {
      between(exchanges, step);
      for (const torch::Tensor& y : exchanges.exchange(inputs(step, world.rank()))) {
        hashes[world.rank()].push_back(bits_of(y));
      }
    }
  });
  for (int rank = 1; rank < ranks; ++rank) EXPECT_EQ(hashes[rank], hashes[0]);
  return hashes[0];
}

void never(RankExchanges& /*exchanges*/, int /*step*/) {}

TEST(Recut, BucketSizesChangeNoBit) {
  for (const char* codec : {"int4", "one_bit"}) {
    for (const int ranks : {1, 3, 8}) {
      const auto large = trajectory(ranks, codec, {}, never);
      EXPECT_EQ(trajectory(ranks, codec, {8192, 8192}, never), large) << codec << ", " << ranks << " ranks";
      EXPECT_EQ(trajectory(ranks, codec, {24576, 16384}, never), large) << codec << ", " << ranks << " ranks";
    }
  }
}

TEST(Recut, ANewOrderInMidRunChangesNoBit) {
  for (const char* codec : {"int4", "one_bit"}) {
    for (const int ranks : {2, 3, 8}) {
      const auto again = [&](RankExchanges& exchanges, int step) {
        if (step == 3) exchanges.set().cut({2, 0, 4, 1, 3}, exchanges.routes(codec));
        if (step == 5) exchanges.set().cut({3, 1, 0, 2, 4}, exchanges.routes(codec));
      };
      EXPECT_EQ(trajectory(ranks, codec, {16384, 8192}, again), trajectory(ranks, codec, {}, never))
          << codec << ", " << ranks << " ranks";
    }
  }
}

// Other kinds give other keys: parameters that shared a bucket no longer do.
TEST(Recut, OtherKindsInMidRunChangeNoBit) {
  for (const int ranks : {2, 5}) {
    const auto again = [&](RankExchanges& exchanges, int step) {
      if (step != 4) return;
      exchanges.set_kind(0, ParameterKind::kEmbedding);
      exchanges.set_kind(4, ParameterKind::kEmbedding);
      exchanges.set().cut(exchanges.set().layout().order, exchanges.routes("int4"));
    };
    EXPECT_EQ(trajectory(ranks, "int4", {}, again), trajectory(ranks, "int4", {}, never)) << ranks << " ranks";
  }
}

TEST(Recut, MovesServerResidualsBitForBit) {
  for (const int ranks : {2, 3, 7}) {
    Collected collected;
    on_ranks(ranks, [&](comm::World& world) {
      RankExchanges exchanges(kSizes, world, "int4", {16384, 8192});
      for (int step = 0; step < 3; ++step) exchanges.exchange(inputs(step, world.rank()));
      const auto put = [&](const std::string& when) {
        for (int i = 0; i < 5; ++i) collected.put(when + std::to_string(i), world.rank(), exchanges.owned_server(i));
      };
      put("before");
      exchanges.set().cut({2, 0, 4, 1, 3}, exchanges.routes("int4"));
      put("after");
    });
    for (int i = 0; i < 5; ++i) {
      const torch::Tensor before = collected.sum("before" + std::to_string(i));
      EXPECT_GT(before.abs().max().item<double>(), 0);
      EXPECT_TRUE(torch::equal(collected.sum("after" + std::to_string(i)), before))
          << ranks << " ranks, parameter " << i;
    }
  }
}

TEST(Recut, ACodecChangeMovesNoResidual) {
  on_ranks(3, [&](comm::World& world) {
    RankExchanges exchanges(kSizes, world, "int4", {16384, 8192});
    for (int step = 0; step < 3; ++step) exchanges.exchange(inputs(step, world.rank()));
    std::vector<std::uint64_t> before, after;
    const auto bits = [&](std::vector<std::uint64_t>& into) {
      for (int i = 0; i < 5; ++i)
        into.insert(into.end(), {bits_of(exchanges.owned_server(i)), exchanges.worker_bits(i)});
    };
    bits(before);
    const std::int64_t sent = world.hop1().counters().all_to_all.load();
    exchanges.set().set_routes(exchanges.routes("one_bit"));
    EXPECT_EQ(world.hop1().counters().all_to_all.load(), sent);
    bits(after);
    EXPECT_EQ(after, before);
  });
}

TEST(Recut, ResidualsOfParametersThatBecomeDenseAreDropped) {
  on_ranks(2, [&](comm::World& world) {
    RankExchanges exchanges(kSizes, world, "int4");
    exchanges.exchange(inputs(0, world.rank()));
    exchanges.set().set_routes(std::vector<ParameterRoute>(kSizes.size()));
    exchanges.set().set_routes(exchanges.routes("int4"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(exchanges.set().unsent(i).abs().max().item<double>(), 0.0);
  });
}

}  // namespace
}  // namespace thinwire::train
