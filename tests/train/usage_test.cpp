// What trainers do: freeze and thaw, leave parameters out, run out of batches, use stock optimizers and collectives.
#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"
#include "tests/train/models.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}};

void step_with(const Vectors& net, torch::optim::Optimizer& optimizer, const std::vector<torch::Tensor>& gradients) {
  optimizer.zero_grad();
  loss_with(net, gradients).backward();
  optimizer.step();
}

// Names in `a` whose bits differ in `b`, and whether one contains `part`.
bool changed(const StateBits& a, const StateBits& b, const std::string& part) {
  for (const auto& [name, bits] : a) {
    if (name.find(part) != std::string::npos && b.at(name) != bits) return true;
  }
  return false;
}

TEST(Usage, AParameterUnusedOnEveryRankKeepsEveryBit) {
  for (const std::int64_t freeze_step : {1000, 2}) {
    std::vector<torch::Tensor> results(3);
    on_ranks(3, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world);
      OneBitAdam optimizer(parallel, {.freeze_step = freeze_step});
      for (int step = 0; step < 4; ++step) step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      const StateBits before = state_bits(parallel, optimizer);
      for (int step = 4; step < 6; ++step) {
        auto gradients = random_gradients(kShapes, step, world.rank());
        gradients[0] = gradients[1] = torch::Tensor();
        step_with(net, optimizer, gradients);
        EXPECT_FALSE(net->list[0].grad().defined());
      }
      const StateBits after = state_bits(parallel, optimizer);
      EXPECT_FALSE(changed(before, after, " of p0"));
      EXPECT_FALSE(changed(before, after, " of p1"));
      EXPECT_TRUE(changed(before, after, "x of p2"));
      step_with(net, optimizer, random_gradients(kShapes, 6, world.rank()));
      EXPECT_TRUE(changed(after, state_bits(parallel, optimizer), "x of p0"));
      results[world.rank()] = flat_parameters(*net);
    });
    for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, results[0]));
  }
}

TEST(Usage, AParameterUnusedOnOneRankHasAZeroGradientThere) {
  for (const std::int64_t freeze_step : {1000, 2}) {
    std::vector<StateBits> results[2];
    for (const bool zeros : {false, true}) {
      results[zeros].resize(3);
      on_ranks(3, [&](comm::World& world) {
        Vectors net(kShapes);
        DataParallel parallel(*net, world);
        OneBitAdam optimizer(parallel, {.freeze_step = freeze_step});
        for (int step = 0; step < 6; ++step) {
          auto gradients = random_gradients(kShapes, step, world.rank());
          if (world.rank() == 1) {
            for (int i : {0, 1}) gradients[i] = zeros ? torch::zeros(kShapes[i]) : torch::Tensor();
          }
          step_with(net, optimizer, gradients);
        }
        results[zeros][world.rank()] = state_bits(parallel, optimizer);
      });
    }
    EXPECT_EQ(results[0], results[1]) << "freeze_step " << freeze_step;
  }
}

TEST(Usage, ParametersMayFreezeAndThaw) {
  std::vector<torch::Tensor> results(2);
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    net->list[0].set_requires_grad(false);
    DataParallel parallel(*net, world, {.codec = "int4"});
    AdamW optimizer(parallel);
    const auto run = [&](int from, int to) {
      for (int step = from; step < to; ++step) {
        step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      }
    };
    const torch::Tensor x0 = net->list[0].detach().clone();
    run(0, 3);
    EXPECT_TRUE(torch::equal(net->list[0], x0)) << "frozen from the start";
    net->list[0].set_requires_grad(true);
    run(3, 6);
    EXPECT_FALSE(torch::equal(net->list[0], x0)) << "thawed";
    net->list[2].set_requires_grad(false);
    const torch::Tensor x2 = net->list[2].detach().clone();
    run(6, 9);
    EXPECT_TRUE(torch::equal(net->list[2], x2)) << "frozen in mid-training";
    results[world.rank()] = flat_parameters(*net);
  });
  EXPECT_TRUE(torch::equal(results[0], results[1]));
}

// Ranks without batches count as zero gradients: a single process does the same.
TEST(Usage, JoinLetsRanksHaveUnequalNumbersOfBatches) {
  constexpr int kRanks = 3;
  const auto batches = [](int rank) { return 3 + 2 * rank; };
  TinyNet reference = make_tiny_net();
  torch::optim::SGD oracle(reference->parameters(), torch::optim::SGDOptions(0.1));
  for (int step = 0; step < batches(kRanks - 1); ++step) {
    oracle.zero_grad();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (step < batches(rank)) (tiny_loss(reference, step, rank) / kRanks).backward();
    }
    oracle.step();
  }
  for (const char* codec : {"fp32", "int4"}) {
    std::vector<torch::Tensor> results(kRanks);
    on_ranks(kRanks, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world, {.codec = codec});
      Sgd optimizer(parallel, {.lr = 0.1});
      for (int step = 0; step < batches(world.rank()); ++step) {
        optimizer.zero_grad();
        tiny_loss(net, step, world.rank()).backward();
        optimizer.step();
      }
      const std::int64_t shadowed = parallel.join([&] { optimizer.step(); });
      EXPECT_EQ(shadowed, batches(kRanks - 1) - batches(world.rank()));
      results[world.rank()] = flat_parameters(*net);
      optimizer.zero_grad();  // and on it goes, with batches on every rank
      tiny_loss(net, 50, world.rank()).backward();
      optimizer.step();
    });
    for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, results[0])) << codec;
    const double tolerance = std::string(codec) == "fp32" ? 1e-5 : 0.05;
    EXPECT_LT(relative_error(results[0], flat_parameters(*reference)), tolerance) << codec;
  }
}

TEST(Usage, AStockOptimizerTrainsWithCommit) {
  TinyNet reference = make_tiny_net();
  torch::optim::SGD oracle(reference->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 8; ++step) {
    oracle.zero_grad();
    for (int rank = 0; rank < 2; ++rank) (tiny_loss(reference, step, rank) / 2).backward();
    torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.3);
    oracle.step();
  }
  for (const char* codec : {"fp32", "int4"}) {
    std::vector<torch::Tensor> results(2);
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world, {.codec = codec, .max_grad_norm = 0.3});
      torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      for (int step = 0; step < 8; ++step) {
        optimizer.zero_grad();
        tiny_loss(net, step, world.rank()).backward();
        ASSERT_TRUE(parallel.commit());
        optimizer.step();
      }
      results[world.rank()] = flat_parameters(*net);
    });
    EXPECT_TRUE(torch::equal(results[0], results[1]));
    const double tolerance = std::string(codec) == "fp32" ? 1e-5 : 0.05;
    EXPECT_LT(relative_error(results[0], flat_parameters(*reference)), tolerance) << codec;
  }
}

TEST(Usage, CommitTellsAStockOptimizerToSkip) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.codec = "int4"});
    EXPECT_FALSE(parallel.commit()) << "nothing to commit";
    for (int step = 0; step < 4; ++step) {
      net->zero_grad();
      auto gradients = random_gradients(kShapes, step, world.rank());
      if (step == 2 && world.rank() == 1) gradients[0].view(-1)[5] = std::numeric_limits<float>::infinity();
      loss_with(net, gradients).backward();
      EXPECT_EQ(parallel.commit(), step != 2);
    }
  });
}

TEST(Usage, TheCallersCollectivesMayComeBetweenBackwardAndStep) {
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.codec = "int4", .bucket_bytes = 8192, .first_bucket_bytes = 8192});
    AdamW optimizer(parallel);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      torch::Tensor value = torch::full({3}, static_cast<double>(world.rank() + step), torch::kDouble);
      parallel.all_reduce_mean(value);
      loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
      parallel.barrier();
      parallel.all_reduce_mean(value);
      optimizer.step();
      parallel.all_reduce_mean(value);
      EXPECT_TRUE(torch::equal(value, torch::full({3}, 1.0 + step, torch::kDouble)));
    }
  });
}

TEST(Usage, BuffersFollowRankZero) {
  struct NormedImpl : torch::nn::Module {
    NormedImpl() {
      linear = register_module("linear", torch::nn::Linear(20, 60));
      norm = register_module("norm", torch::nn::BatchNorm1d(60));
    }
    torch::nn::Linear linear{nullptr};
    torch::nn::BatchNorm1d norm{nullptr};
  };
  for (const bool broadcast : {true, false}) {
    Collected collected;
    torch::Tensor alone;  // what rank 0 has without anyone's help
    on_ranks(2, [&](comm::World& world) {
      NormedImpl net;
      DataParallel parallel(net, world, {.broadcast_buffers = broadcast});
      Sgd optimizer(parallel, {.lr = 0.0});
      for (int step = 0; step < 3; ++step) {
        const torch::Tensor x = noise(static_cast<std::uint64_t>(10 * step + world.rank()), {8, 20}) + world.rank();
        net.norm(net.linear(x)).square().mean().backward();
        optimizer.step();
      }
      collected.put("mean", world.rank(), net.norm->running_mean);
      collected.put("count", world.rank(), net.norm->num_batches_tracked);
      parallel.sync_buffers();
      collected.put("synced", world.rank(), net.norm->running_mean);
    });
    EXPECT_EQ(collected.same("mean"), broadcast);
    EXPECT_TRUE(collected.same("synced"));
    EXPECT_TRUE(torch::equal(collected.of("synced").at(1), collected.of("mean").at(0))) << "rank 0's";
    EXPECT_EQ(collected.of("count").at(1).item<std::int64_t>(), 3);
  }
}

}  // namespace
}  // namespace thinwire::train
