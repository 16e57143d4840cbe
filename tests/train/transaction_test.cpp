// An exchange changes nothing until step() commits it: NaN, exceptions, steps that are not taken.
#include <gtest/gtest.h>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/throwing.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}, {1000}, {64, 64}};
const DataParallelSettings kSmallBuckets{.codec = "int4", .bucket_bytes = 8192, .first_bucket_bytes = 8192};

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(DataParallel&)>;
struct Case {
  const char* name;
  MakeOptimizer make;
};

std::vector<Case> cases() {
  return {{"Sgd with momentum", [](DataParallel& p) { return std::make_unique<Sgd>(p, SgdSettings{.momentum = 0.9}); }},
          {"AdamW", [](DataParallel& p) { return std::make_unique<AdamW>(p); }},
          {"OneBitAdam in warm-up",
           [](DataParallel& p) { return std::make_unique<OneBitAdam>(p, OneBitAdamSettings{.freeze_step = 1000}); }},
          {"OneBitAdam frozen",
           [](DataParallel& p) { return std::make_unique<OneBitAdam>(p, OneBitAdamSettings{.freeze_step = 2}); }}};
}

void step_with(const Vectors& net, torch::optim::Optimizer& optimizer, const std::vector<torch::Tensor>& gradients) {
  optimizer.zero_grad();
  loss_with(net, gradients).backward();
  optimizer.step();
}

TEST(Transactions, ANaNAnywhereLeavesEveryBitOnEveryRank) {
  for (const Case& one : cases()) {
    for (const std::size_t bad : {std::size_t{0}, kShapes.size() - 1, std::size_t{3}}) {
      SCOPED_TRACE(testing::Message() << one.name << ", parameter " << bad);
      std::vector<torch::Tensor> results(3);
      on_ranks(3, [&](comm::World& world) {
        Vectors net(kShapes);
        DataParallel parallel(*net, world, kSmallBuckets);
        const auto optimizer = one.make(parallel);
        for (int step = 0; step < 4; ++step) step_with(net, *optimizer, random_gradients(kShapes, step, world.rank()));
        const StateBits before = state_bits(parallel, *optimizer);
        auto gradients = random_gradients(kShapes, 4, world.rank());
        if (world.rank() == 2) gradients[bad].view(-1)[-1] = std::numeric_limits<float>::quiet_NaN();
        step_with(net, *optimizer, gradients);
        EXPECT_TRUE(parallel.last_step().skipped);
        EXPECT_EQ(state_bits(parallel, *optimizer), before) << "rank " << world.rank();
        step_with(net, *optimizer, random_gradients(kShapes, 5, world.rank()));
        EXPECT_FALSE(parallel.last_step().skipped);
        EXPECT_NE(state_bits(parallel, *optimizer), before);
        results[world.rank()] = flat_parameters(*net);
      });
      for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, results[0]));
    }
  }
}

// The very first step is dense and decides the order of buckets.
TEST(Transactions, ANaNInTheFirstStepLeavesEveryBit) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, kSmallBuckets);
    AdamW optimizer(parallel);
    const StateBits before = state_bits(parallel, optimizer);
    auto gradients = random_gradients(kShapes, 0, world.rank());
    if (world.rank() == 1) gradients[2].view(-1)[0] = std::numeric_limits<float>::infinity();
    step_with(net, optimizer, gradients);
    EXPECT_TRUE(parallel.last_step().skipped);
    EXPECT_EQ(state_bits(parallel, optimizer), before);
    for (int step = 1; step < 3; ++step) step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

// A run in which a step was computed and not taken goes on as if that step had not been.
TEST(Transactions, AStepThatIsNotTakenLeavesNoTrace) {
  for (const Case& one : cases()) {
    std::vector<StateBits> results[2];
    for (const bool extra : {false, true}) {
      results[extra].resize(2);
      on_ranks(2, [&](comm::World& world) {
        Vectors net(kShapes);
        DataParallel parallel(*net, world, kSmallBuckets);
        const auto optimizer = one.make(parallel);
        for (int step = 0; step < 6; ++step) {
          if (extra && step >= 3) {
            optimizer->zero_grad(/*set_to_none=*/step % 2 == 0);
            loss_with(net, random_gradients(kShapes, 100 + step, world.rank())).backward();
          }
          step_with(net, *optimizer, random_gradients(kShapes, step, world.rank()));
        }
        results[extra][world.rank()] = state_bits(parallel, *optimizer);
      });
    }
    EXPECT_EQ(results[0], results[1]) << one.name;
  }
}

struct Recovery {
  bool calls_step;  // the rank that threw
  bool to_none;     // which zero_grad
  const char* codec;
};

class ExceptionInBackward : public testing::TestWithParam<int> {};  // the rank that throws; -1: all

TEST_P(ExceptionInBackward, GivesTheStepUpEverywhereAndTrainingGoesOn) {
  for (const bool calls_step : {false, true}) {
    std::vector<torch::Tensor> results(3);
    on_ranks(3, [&](comm::World& world) {
      Fragile net;
      DataParallel parallel(*net, world, {.codec = "int4", .bucket_bytes = 8192, .first_bucket_bytes = 8192});
      AdamW optimizer(parallel, {.lr = 1e-2});
      for (int step = 0; step < 8; ++step) {
        const bool planted = step == 0 || step == 4;
        const bool armed = planted && (GetParam() < 0 || GetParam() == world.rank());
        const StateBits before = state_bits(parallel, optimizer);
        optimizer.zero_grad();
        const torch::Tensor loss = net->loss(step, world.rank(), armed);
        if (armed) {
          EXPECT_THROW(loss.backward(), std::runtime_error);
        } else {
          loss.backward();
        }
        if (!armed || calls_step) optimizer.step();
        EXPECT_EQ(state_bits(parallel, optimizer) == before, planted) << "step " << step;
      }
      results[world.rank()] = flat_parameters(*net);
    });
    for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, results[0]));
  }
}

// Gradients of the step that was given up are not added to those of the next one, nor is what its exchange, which may
// still run while the trainer zeroes them, writes into them.
TEST_P(ExceptionInBackward, LeavesNoTrace) {
  for (const Recovery& way : {Recovery{false, true, "int4"}, Recovery{true, true, "int4"},
                              Recovery{false, false, "int4"}, Recovery{false, false, "fp32"}}) {
    SCOPED_TRACE(testing::Message() << way.calls_step << way.to_none << way.codec);
    std::vector<torch::Tensor> results[2];
    for (const bool planted : {false, true}) {
      results[planted].resize(3);
      on_ranks(3, [&](comm::World& world) {
        Fragile net;
        DataParallel parallel(*net, world, {.codec = way.codec, .bucket_bytes = 8192, .first_bucket_bytes = 8192});
        AdamW optimizer(parallel, {.lr = 1e-2});
        for (int step = 0; step < 6; ++step) {
          if (planted && (step == 0 || step == 3)) {
            const bool armed = GetParam() < 0 || GetParam() == world.rank();
            optimizer.zero_grad();
            const torch::Tensor loss = net->loss(100 + step, world.rank(), armed);
            if (armed) {
              EXPECT_THROW(loss.backward(), std::runtime_error);
            } else {
              loss.backward();
            }
            if (!armed || way.calls_step) optimizer.step();
          }
          optimizer.zero_grad(way.to_none);
          net->loss(step, world.rank()).backward();
          optimizer.step();
        }
        results[planted][world.rank()] = flat_parameters(*net);
      });
    }
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(torch::equal(results[true][rank], results[false][rank])) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExceptionInBackward, testing::Values(-1, 0, 2));

TEST(Transactions, DestructionInMidStepFreesTheOthers) {
  on_ranks(3, [&](comm::World& world) {
    Fragile net;
    {
      DataParallel parallel(*net, world);
      Sgd optimizer(parallel);
      const torch::Tensor loss = net->loss(0, world.rank(), world.rank() == 1);
      if (world.rank() == 1) {
        EXPECT_THROW(loss.backward(), std::runtime_error);
      } else {
        loss.backward();
        const torch::Tensor before = flat_parameters(*net);
        optimizer.step();
        EXPECT_TRUE(parallel.last_step().skipped);
        EXPECT_TRUE(torch::equal(flat_parameters(*net), before));
      }
    }
    DataParallel again(*net, world);  // the groups are as good as new
    Sgd optimizer(again);
    net->zero_grad();
    net->loss(1, world.rank()).backward();
    optimizer.step();
    EXPECT_FALSE(again.last_step().skipped);
  });
}

// The exception leaves the trainer's loop: whoever waits for this rank learns of it long before the timeout.
TEST(Transactions, AnExceptionThatUnwindsShutsTheGroupsDown) {
  std::vector<std::string> errors(2);
  EXPECT_THROW(on_ranks(
                   2,
                   [&](comm::World& world) {
                     Fragile net;
                     try {
                       DataParallel parallel(*net, world);
                       Sgd optimizer(parallel);
                       net->loss(0, world.rank(), world.rank() == 1).backward();
                     } catch (const std::exception& error) {
                       errors[world.rank()] = error.what();
                       throw;
                     }
                   },
                   600'000),
               Error);
  EXPECT_NE(errors[0], "");
  EXPECT_EQ(errors[1], "planted in backward");
}

}  // namespace
}  // namespace thinwire::train
