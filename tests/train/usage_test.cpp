// What trainers do: freeze and thaw, leave parameters out, run out of batches, use stock optimizers and collectives.
#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"
#include "tests/train/models.hpp"
#include "thinwire/base/log.hpp"
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

// One without gradient that is not frozen may have been tied wrongly, which is worth a warning.
TEST(Usage, WarnsOfAParameterWithoutGradientUnlessItIsFrozen) {
  std::vector<std::string> messages;
  set_log_sink([&](LogLevel, const std::string& text) { messages.push_back(text); });
  on_ranks(1, [&](comm::World& world) {
    Vectors net(kShapes);
    net->list[0].set_requires_grad(false);
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    auto gradients = random_gradients(kShapes, 0, world.rank());
    gradients[2] = torch::Tensor();
    step_with(net, optimizer, gradients);
  });
  set_log_sink({});
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("2 got no gradient"), std::string::npos) << messages[0];
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

// Every byte is in some line of the step log, from the first step on.
TEST(Usage, ReportedBytesAddUp) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = "int4", .parity_every = 2});
    const std::int64_t before = parallel.sent_bytes();
    OneBitAdam optimizer(parallel, {.freeze_step = 4});
    std::int64_t reported = 0;
    for (int step = 0; step < 8; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      if (step == 3) parallel.barrier();
      optimizer.step();
      reported += parallel.last_step().sent_bytes;
    }
    const std::int64_t tail = parallel.sent_bytes() - before - reported;  // the parity check after the last report
    EXPECT_GE(tail, 0);
    EXPECT_LT(tail, 1000);
    EXPECT_GT(reported, 0);
    optimizer.zero_grad();
    tiny_loss(net, 8, world.rank()).backward();
    const std::int64_t all = parallel.sent_bytes() - before;
    optimizer.step();
    EXPECT_EQ(reported + parallel.last_step().sent_bytes, all);
  });
}

// What a trace shows of a step: each bucket's part in it, in order.
TEST(Usage, TheTimelineHoldsEveryPartOfAStep) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = "int4"});
    AdamW optimizer(parallel);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      optimizer.step();
    }
    std::map<std::pair<watch::EventKind, int>, std::vector<watch::Event>> found;
    for (const watch::Event& event : parallel.timeline().events()) {
      EXPECT_LE(event.begin_s, event.end_s) << watch::to_string(event.kind);
      if (event.step == 3) found[{event.kind, event.bucket}].push_back(event);
    }
    using Kind = watch::EventKind;
    for (const Kind kind : {Kind::kBackward, Kind::kExposed, Kind::kUpdate}) EXPECT_EQ((found[{kind, -1}].size()), 1U);
    for (const schema::BucketReport& bucket : parallel.last_step().buckets) {
      const auto one = [&](Kind kind) {
        EXPECT_EQ((found[{kind, bucket.bucket}].size()), 1U) << watch::to_string(kind) << " " << bucket.bucket;
        return found[{kind, bucket.bucket}].at(0);
      };
      if (bucket.group == "dense") {
        EXPECT_LE(one(Kind::kReady).end_s, one(Kind::kDense).begin_s);
        continue;
      }
      const std::vector<watch::Event> order{one(Kind::kReady),  one(Kind::kEncode),       one(Kind::kExchangeHop1),
                                            one(Kind::kReduce), one(Kind::kExchangeHop2), one(Kind::kDecode)};
      for (std::size_t i = 1; i < order.size(); ++i) EXPECT_LE(order[i - 1].end_s, order[i].begin_s) << i;
      EXPECT_EQ(order[2].bytes + order[4].bytes, bucket.sent_bytes);
      EXPECT_GT(bucket.reduce_s, 0);
    }
  });
}

TEST(Usage, BuffersOfAnyTypeFollowRankZero) {
  struct Mixed : torch::nn::Module {
    explicit Mixed(int rank) {
      weight = register_parameter("weight", torch::zeros({40, 40}));
      for (const auto dtype :
           {torch::kUInt8, torch::kInt8, torch::kInt16, torch::kBool, torch::kBFloat16, torch::kFloat64})
        register_buffer(std::string("b") + std::to_string(static_cast<int>(dtype)), torch::full({3, 5}, rank, dtype));
      register_buffer("complex", torch::full({3}, static_cast<double>(rank), torch::kComplexFloat));
    }
    torch::Tensor weight;
  };
  on_ranks(3, [&](comm::World& world) {
    Mixed net(world.rank());
    DataParallel parallel(net, world);
    for (const auto& buffer : net.named_buffers())
      EXPECT_TRUE(torch::equal(buffer.value(), torch::zeros_like(buffer.value()))) << buffer.key();
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
