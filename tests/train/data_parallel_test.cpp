// Data parallel training against a single process that sees the joined batch.
#include "thinwire/train/ddp/data_parallel.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"

namespace thinwire::train {
namespace {

constexpr int kSteps = 30;

// torch's own AdamW on the mean of the ranks' losses.
torch::Tensor single_process(int ranks, int steps, double max_norm = 0) {
  TinyNet net = make_tiny_net();
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    for (int rank = 0; rank < ranks; ++rank) (tiny_loss(net, step, rank) / ranks).backward();
    if (max_norm > 0) torch::nn::utils::clip_grad_norm_(net->parameters(), max_norm);
    optimizer.step();
  }
  return flat_parameters(*net);
}

torch::Tensor data_parallel(int ranks, int steps, const DataParallelSettings& settings) {
  std::vector<torch::Tensor> results(ranks);
  on_ranks(ranks, [&](comm::World& world) {
    TinyNet net = make_tiny_net(world.rank() + 1);  // rank 0's weights must win
    DataParallel parallel(*net, world, settings);
    AdamW optimizer(parallel, {.lr = 1e-2, .weight_decay = 0.1});
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      optimizer.step();
    }
    results[world.rank()] = flat_parameters(*net);
  });
  for (int rank = 1; rank < ranks; ++rank) EXPECT_TRUE(torch::equal(results[rank], results[0])) << "rank " << rank;
  return results[0];
}

TEST(DataParallel, DenseEqualsASingleProcessOnTheJoinedBatch) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const torch::Tensor expected = single_process(ranks, kSteps);
    const torch::Tensor got = data_parallel(ranks, kSteps, {.parity_every = 10});
    EXPECT_LT((got - expected).norm().item<double>(), 1e-4 * expected.norm().item<double>()) << ranks << " ranks";
  }
}

TEST(DataParallel, SmallBucketsGiveTheSameBitsAsLargeOnes) {
  const torch::Tensor large = data_parallel(3, kSteps, {.codec = "int4"});
  const torch::Tensor small =
      data_parallel(3, kSteps, {.codec = "int4", .bucket_bytes = 8192, .first_bucket_bytes = 8192});
  EXPECT_TRUE(torch::equal(large, small));
}

TEST(DataParallel, CompressedTrainingStaysNearDense) {
  const torch::Tensor dense = data_parallel(4, kSteps, {});
  for (const char* codec : {"bf16", "int8", "int4"}) {
    const torch::Tensor got = data_parallel(4, kSteps, {.codec = codec});
    EXPECT_LT((got - dense).norm().item<double>(), 0.2 * dense.norm().item<double>()) << codec;
    EXPECT_FALSE(torch::equal(got, dense)) << codec << " sent nothing through a codec";
  }
}

TEST(DataParallel, ClippingMeansDenseClipping) {
  const torch::Tensor expected = single_process(2, kSteps, 0.05);
  const torch::Tensor got = data_parallel(2, kSteps, {.max_grad_norm = 0.05});
  EXPECT_LT((got - expected).norm().item<double>(), 1e-4 * expected.norm().item<double>());
}

TEST(OneBitAdam, FreezesAndKeepsRanksIdentical) {
  for (int ranks : {1, 2, 3}) {
    std::vector<torch::Tensor> results(ranks);
    std::vector<double> first(ranks), last(ranks);
    on_ranks(ranks, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world, {.parity_every = 5});
      OneBitAdam optimizer(parallel, {.lr = 3e-3, .beta2 = 0.9, .freeze_step = 20});
      for (int step = 0; step < 120; ++step) {
        optimizer.zero_grad();
        torch::Tensor loss = tiny_loss(net, step, world.rank(), 32);
        loss.backward();
        optimizer.step();
        if (step == 0) first[world.rank()] = loss.item<double>();
        last[world.rank()] = loss.item<double>();
      }
      EXPECT_EQ(optimizer.frozen_at(), 20);
      EXPECT_EQ(parallel.last_step().optimizer_stage, "one_bit");
      results[world.rank()] = flat_parameters(*net);
    });
    for (int rank = 1; rank < ranks; ++rank) EXPECT_TRUE(torch::equal(results[rank], results[0]));
    EXPECT_LT(last[0], 0.5 * first[0]) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace thinwire::train
