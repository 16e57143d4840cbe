// Wrong calls: one clear message, nothing hangs, and where nothing was sent training goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/refusal.hpp"
#include "tests/train/throwing.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

using testing::HasSubstr;

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}};

void one_step(TinyNet& net, torch::optim::Optimizer& optimizer, int step, int rank) {
  optimizer.zero_grad();
  tiny_loss(net, step, rank).backward();
  optimizer.step();
}

TEST(Misuse, AStepAfterAccumulationOnlyIsRefused) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = "int4"});
    AdamW optimizer(parallel);
    one_step(net, optimizer, 0, world.rank());
    optimizer.zero_grad();
    {
      const auto accumulate = parallel.no_sync();
      tiny_loss(net, 1, world.rank()).backward();
    }
    EXPECT_THAT(refusal(ErrorCode::kState, [&] { optimizer.step(); }), HasSubstr("only accumulated, under no_sync()"));
    one_step(net, optimizer, 2, world.rank());
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

TEST(Misuse, AllReduceMeanRefusesWhatDoesNotFitOnEveryRankAlike) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    const std::vector<torch::Tensor> wrong{torch::zeros({4}, torch::kHalf), torch::zeros({4}, torch::kLong),
                                           torch::zeros({4, 4}).t().slice(0, 0, 2), torch::Tensor()};
    for (const torch::Tensor& values : wrong) {
      refusal(ErrorCode::kInvalidArgument, [&] { parallel.all_reduce_mean(values); });
      refusal(ErrorCode::kMismatch, [&] { parallel.all_reduce_mean(world.rank() == 0 ? values : torch::zeros({4})); });
    }
    EXPECT_THAT(refusal(ErrorCode::kMismatch, [&] { parallel.all_reduce_mean(torch::zeros({4 + world.rank()})); }),
                HasSubstr("tensor differs between ranks"));
    refusal(ErrorCode::kMismatch,
            [&] { parallel.all_reduce_mean(torch::zeros({4}, world.rank() == 0 ? torch::kFloat : torch::kDouble)); });
    const torch::Tensor mean = torch::full({3}, 1.0F + world.rank());
    parallel.all_reduce_mean(mean);
    EXPECT_EQ(mean[2].item<float>(), 1.5F);
    one_step(net, optimizer, 0, world.rank());
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

TEST(Misuse, TwoStepsOpenAtOnceOverOneWorldAreRefused) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet a = make_tiny_net(1);
    TinyNet b = make_tiny_net(2);
    DataParallel parallel_a(*a, world), parallel_b(*b, world);
    AdamW optimizer_a(parallel_a), optimizer_b(parallel_b);
    one_step(a, optimizer_a, 0, world.rank());  // in turn is fine
    one_step(b, optimizer_b, 0, world.rank());
    EXPECT_THAT(
        refusal(ErrorCode::kState, [&] { (tiny_loss(a, 1, world.rank()) + tiny_loss(b, 1, world.rank())).backward(); }),
        HasSubstr("a World for each"));
    optimizer_a.step();
    optimizer_b.step();
    one_step(a, optimizer_a, 2, world.rank());
    one_step(b, optimizer_b, 2, world.rank());
    EXPECT_FALSE(parallel_a.last_step().skipped);
    EXPECT_FALSE(parallel_b.last_step().skipped);
  });
}

TEST(Misuse, OneBitOfAGradientIsOnlyForSgd) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.codec = "one_bit"});
    refusal(ErrorCode::kInvalidArgument, [&] { const AdamW optimizer(parallel); });
    loss_with(net, random_gradients(kShapes, 0, world.rank())).backward();
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, [&] { parallel.commit(); }), HasSubstr("OneBitAdam"));
  });
}

// A stock optimizer that goes its own way on one rank.
TEST(Misuse, ParityIsAlsoComparedForOptimizersThatAreNotOurs) {
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.parity_every = 2});
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(world.rank() == 1 ? 0.2 : 0.1));
    const auto step = [&](int number) {
      optimizer.zero_grad();
      loss_with(net, random_gradients(kShapes, number, world.rank())).backward();
      if (parallel.commit()) optimizer.step();
    };
    step(0);
    step(1);
    EXPECT_THAT(refusal(ErrorCode::kMismatch, [&] { step(2); }), HasSubstr("other bits on rank 1"));
  });
}

// Destruction in the order of declaration: first the optimizer, whose momentum an exchange may still be reading.
TEST(Misuse, AnExceptionAfterTheFreezeLeavesNothingThatReadsFreedMomentum) {
  for (const bool unwinds : {false, true}) {
    const auto run = [&] {
      on_ranks(2, [&](comm::World& world) {
        Fragile net;
        DataParallel parallel(*net, world, {.bucket_bytes = 8192, .first_bucket_bytes = 8192});
        OneBitAdam optimizer(parallel, {.freeze_step = 2});
        for (int step = 0; step < 4; ++step) {
          optimizer.zero_grad();
          net->loss(step, world.rank()).backward();
          optimizer.step();
        }
        ASSERT_TRUE(optimizer.frozen());
        const torch::Tensor loss = net->loss(4, world.rank(), /*armed=*/true);
        if (unwinds) loss.backward();
        EXPECT_THROW(loss.backward(), std::runtime_error);
      });
    };
    if (unwinds) {
      EXPECT_THROW(run(), std::exception);
    } else {
      run();
    }
  }
}

TEST(Misuse, AModelOutlivesItsOneBitAdam) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    const auto train = [&](torch::optim::Optimizer& optimizer, int from) {
      for (int step = from; step < from + 4; ++step) {
        optimizer.zero_grad();
        loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
        optimizer.step();
      }
    };
    {
      OneBitAdam first(parallel, {.freeze_step = 2});
      train(first, 0);
      ASSERT_TRUE(first.frozen());
    }
    net->zero_grad();
    loss_with(net, random_gradients(kShapes, 9, world.rank())).backward();
    EXPECT_TRUE(parallel.commit());
    AdamW second(parallel);
    train(second, 10);
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

}  // namespace
}  // namespace thinwire::train
