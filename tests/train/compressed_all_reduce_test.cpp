// The two-hop compressed all-reduce with error feedback on both hops, as the exchanges of a model run it.
#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"
#include "thinwire/comm/two_hop.hpp"

namespace thinwire::train {
namespace {

constexpr const char* kCodecs[] = {"bf16", "int8", "int4", "one_bit", "one_bit:scale=mean_abs,block=128"};

torch::Tensor input(std::int64_t d, std::int64_t step, int rank) {
  return noise(static_cast<std::uint64_t>(1 + 1000 * step + 10 * rank), {d}) + 0.1 * (rank + 1);
}

// Sums of y and of mean x over `steps`, and E at the end, from all ranks.
struct Sums {
  torch::Tensor sent, wanted, unsent;
  bool same = true;
};

Sums run(int ranks, std::int64_t d, const std::string& codec, int steps,
         const std::function<torch::Tensor(int step, int rank)>& x) {
  Collected collected;
  on_ranks(ranks, [&](comm::World& world) {
    RankExchanges exchanges({d}, world, codec);
    torch::Tensor sent = torch::zeros({d}, torch::kDouble);
    torch::Tensor given = torch::zeros({d}, torch::kDouble);
    for (int step = 0; step < steps; ++step) {
      const torch::Tensor mine = x(step, world.rank());
      sent += exchanges.exchange({mine})[0];
      given += mine;
    }
    collected.put("sent", world.rank(), sent);
    collected.put("given", world.rank(), given);
    collected.put("unsent", world.rank(), exchanges.set().unsent(0));
  });
  return {collected.of("sent").at(0), collected.mean("given"), collected.sum("unsent"), collected.same("sent")};
}

TEST(CompressedAllReduce, WhatWasSentAndWhatWasNotAddUpToWhatWasGiven) {
  constexpr int kSteps = 6;
  for (const char* codec : kCodecs) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      // Every world with every codec; lengths take turns.
      for (const std::int64_t d : {ranks % 2 == 0 ? 300 : 7, ranks % 3 == 0 ? 2049 : 6151}) {
        SCOPED_TRACE(testing::Message() << codec << ", " << ranks << " ranks, d = " << d);
        const Sums sums = run(ranks, d, codec, kSteps, [&](int step, int rank) { return input(d, step, rank); });
        EXPECT_TRUE(sums.same) << "y differs between ranks";
        EXPECT_LT((sums.sent + sums.unsent - sums.wanted).abs().max().item<double>(), 2e-5);
      }
    }
  }
}

TEST(CompressedAllReduce, EveryLengthWorksWithFewerElementsThanRanksToo) {
  for (const int ranks : {1, 3, 8}) {
    on_ranks(ranks, [&](comm::World& world) {
      for (std::int64_t d = 0; d < 20; ++d) {
        RankExchanges exchanges({d, 3 * d + 1}, world, "int4");
        const std::vector<torch::Tensor> x{input(d, 0, 0), input(3 * d + 1, 1, 0)};  // the same on every rank
        const std::vector<torch::Tensor> y = exchanges.exchange(x);
        for (int i : {0, 1}) {
          if (x[i].numel() == 0) continue;
          EXPECT_LE((y[i] - x[i]).abs().max().item<double>(), 0.16 * x[i].abs().max().item<double>()) << d;
        }
      }
    });
  }
}

TEST(CompressedAllReduce, TheTimeAverageOfAConstantIsTheConstant) {
  for (const char* codec : kCodecs) {
    for (const int ranks : {1, 3}) {
      const std::int64_t d = 2500;
      const auto constant = [&](int, int rank) { return input(d, 0, rank); };
      const auto error_after = [&](int steps) {
        const Sums sums = run(ranks, d, codec, steps, constant);
        return relative_error(sums.sent / steps, sums.wanted / steps);
      };
      const double late = error_after(200);
      EXPECT_LT(late, 0.1) << codec << ", " << ranks << " ranks";
      EXPECT_LT(late, 0.5 * error_after(20)) << codec << ", " << ranks << " ranks";
    }
  }
}

TEST(CompressedAllReduce, CommutesWithPowersOfTwo) {
  for (const char* codec : kCodecs) {
    for (const double alpha : {0.25, 1048576.0}) {
      on_ranks(3, [&](comm::World& world) {
        const std::int64_t d = 4500;
        RankExchanges plain({d}, world, codec);
        RankExchanges scaled({d}, world, codec);
        for (int step = 0; step < 5; ++step) {
          const torch::Tensor x = input(d, step, world.rank());
          const torch::Tensor y = plain.exchange({x})[0];
          EXPECT_TRUE(torch::equal(scaled.exchange({x * alpha})[0], y * alpha)) << codec << " " << alpha;
        }
      });
    }
  }
}

TEST(CompressedAllReduce, OneRankWithTheIdentityCodecChangesNothing) {
  on_ranks(1, [&](comm::World& world) {
    RankExchanges exchanges({5000, 3}, world, "fp32");
    for (int step = 0; step < 3; ++step) {
      const std::vector<torch::Tensor> x{input(5000, step, 0), input(3, step, 0)};
      const std::vector<torch::Tensor> y = exchanges.exchange(x);
      for (int i : {0, 1}) {
        EXPECT_EQ(bits_of(y[i]), bits_of(x[i]));
        EXPECT_EQ(exchanges.set().unsent(i).abs().max().item<double>(), 0.0);
      }
    }
  });
}

// Padding has no part in a scale: a short chunk decodes to the same values whatever the number of owners.
TEST(CompressedAllReduce, TheResultDependsOnTheWorldThroughTheMeanOnly) {
  const std::int64_t d = 4099;
  torch::Tensor alone;
  for (int ranks = 1; ranks <= 8; ranks *= 2) {
    Collected collected;
    on_ranks(ranks, [&](comm::World& world) {
      RankExchanges exchanges({d}, world, "one_bit");
      collected.put("y", world.rank(), exchanges.exchange({input(d, 0, 0)})[0]);  // everyone has the same x
    });
    if (ranks == 1) alone = collected.of("y").at(0);
    // Adding n equal values rounds on the way, so not to the bit.
    EXPECT_LT(relative_error(collected.of("y").at(0), alone), 1e-6) << ranks << " ranks";
  }
}

TEST(CompressedAllReduce, ANotFiniteValueIsKnownToEveryRank) {
  for (const char* codec : kCodecs) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      on_ranks(3, [&](comm::World& world) {
        RankExchanges exchanges({9000}, world, codec, {8192, 8192});
        torch::Tensor x = input(9000, 0, world.rank());
        if (world.rank() == 2) x[8999] = bad;
        std::uint32_t flags = 0;
        exchanges.exchange({x}, &flags);
        EXPECT_NE(flags & comm::flag::kNonFinite, 0U) << codec << " on rank " << world.rank();
      });
    }
  }
}

// Finite on every rank, but their sum is not: only the owner sees it, in its chunk.
TEST(CompressedAllReduce, ASumThatOverflowsIsKnownToEveryRank) {
  for (const char* codec : {"bf16", "int8", "int4"}) {
    on_ranks(3, [&](comm::World& world) {
      RankExchanges exchanges({9000}, world, codec);
      torch::Tensor x = torch::ones({9000});
      x[8999] = 3e38F;
      std::uint32_t flags = 0;
      exchanges.exchange({x}, &flags);
      EXPECT_NE(flags & comm::flag::kNonFinite, 0U) << codec << " on rank " << world.rank();
    });
  }
}

}  // namespace
}  // namespace thinwire::train
