// Training over Gloo processes against single-process AdamW and against the same ranks as threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

#include "tests/dist/train_bodies.hpp"
#include "tests/dist/train_parts.hpp"
#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"

namespace thinwire::tests {
namespace {

using train::Shape;
using train::Vectors;

constexpr std::int64_t kBatch = 8;

// ---- dense: what one process would do with everybody's batches

torch::Tensor joined_loss(train::TinyNet& net, std::int64_t step, int ranks) {
  std::vector<torch::Tensor> tokens, targets;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [some_tokens, some_targets] = train::tiny_batch(step, rank, kBatch);
    tokens.push_back(some_tokens);
    targets.push_back(some_targets);
  }
  return torch::nn::functional::cross_entropy(net->forward(torch::cat(tokens)), torch::cat(targets));
}

TEST(RankBody, DISABLED_DenseAgainstOneProcess) {
  const auto world = init_from_env();
  train::TinyNet net = train::make_tiny_net(), alone = train::make_tiny_net();
  DataParallel parallel(*net, *world, {.bucket_bytes = 16384, .first_bucket_bytes = 8192});
  AdamW optimizer(parallel, train::AdamWSettings{.lr = 1e-3, .weight_decay = 0.1});
  torch::optim::AdamW reference(alone->parameters(), torch::optim::AdamWOptions(1e-3).weight_decay(0.1));
  for (std::int64_t step = 0; step < 40; ++step) {
    optimizer.zero_grad();
    train::tiny_loss(net, step, world->rank(), kBatch).backward();
    optimizer.step();
    reference.zero_grad();
    joined_loss(alone, step, world->size()).backward();
    reference.step();
  }
  const torch::Tensor got = train::flat_parameters(*net), want = train::flat_parameters(*alone);
  EXPECT_LE((got - want).norm().item<double>(), 1e-5 * want.norm().item<double>());
  EXPECT_GT((want - train::flat_parameters(*train::make_tiny_net())).norm().item<double>(),
            0.01 * want.norm().item<double>())
      << "nothing was trained";
}

// ---- compressed: the same bits on every rank and on every kind of group

const std::vector<Shape> kShapes{{90, 91}, {300}, {50, 50}, {7}, {130, 100}, {1000}};

// Few bits each, so that sums are exact and do not depend on the order in which a group adds.
std::vector<torch::Tensor> short_gradients(std::int64_t step, int rank) {
  std::vector<torch::Tensor> gradients = train::random_gradients(kShapes, step, rank);
  for (torch::Tensor& gradient : gradients) gradient = (gradient * 64).round() / 64;
  return gradients;
}

struct Bits {
  std::string shared;  // must be equal on all ranks
  std::string own;     // with this rank's residuals
};

Bits bits_after_training(World& world, const std::string& kind) {
  Vectors net(kShapes);
  DataParallel parallel(*net, world, {.codec = codec_of(kind), .bucket_bytes = 16384, .first_bucket_bytes = 8192});
  const auto optimizer = make_optimizer(parallel, kind, 10);
  for (std::int64_t step = 0; step < 30; ++step) {
    optimizer->zero_grad();
    loss_with(net, short_gradients(step, world.rank())).backward();
    optimizer->step();
  }
  EXPECT_EQ(parallel.last_step().optimizer_stage == "one_bit", kind == "one_bit");
  return {state_text(parallel, *optimizer, "xmv"), state_text(parallel, *optimizer)};
}

TEST(RankBody, DISABLED_Compressed) {
  const auto world = init_from_env();
  const Bits bits = bits_after_training(*world, given("TRAIN_KIND"));
  std::printf("\nSHARED %s\nOWN %s\n", bits.shared.c_str(), bits.own.c_str());
}

void expect_bits_of_threads(int size, const std::string& kind) {
  SCOPED_TRACE(kind);
  std::vector<Bits> want(size);
  train::on_ranks(size, [&](World& world) { want[world.rank()] = bits_after_training(world, kind); });
  const auto results = expect_body_passes(size, "Compressed", {{"TRAIN_KIND", kind}});
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(lines_of(results[rank].output, "SHARED"), std::vector<std::string>{want[0].shared}) << "rank " << rank;
    EXPECT_EQ(lines_of(results[rank].output, "OWN"), std::vector<std::string>{want[rank].own}) << "rank " << rank;
  }
}

// ---- buckets that become ready in any order

constexpr int kBranches = 40;
const std::vector<Shape> kBranchShapes(kBranches, Shape{32, 64});  // one bucket each

// Autograd runs what was built last first: the order in which the branches are built is the order of the gradients.
torch::Tensor shuffled_loss(const Vectors& net, std::int64_t step, int rank, std::mt19937& order) {
  std::vector<int> branches(kBranches);
  std::iota(branches.begin(), branches.end(), 0);
  std::shuffle(branches.begin(), branches.end(), order);
  const auto gradients = train::random_gradients(kBranchShapes, step, rank);
  torch::Tensor loss = torch::zeros({});
  for (const int branch : branches) loss = loss + InBackward::apply((net->list[branch] * gradients[branch]).sum());
  return loss;
}

TEST(RankBody, DISABLED_ShuffledBuckets) {
  const auto world = init_from_env();
  std::mt19937 order(static_cast<unsigned>(std::stoul(given("TRAIN_SEED")) * 31 + world->rank()));
  InBackward::callback = [&] {
    if (order() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(order() % 300));
  };
  Vectors net(kBranchShapes);
  DataParallel parallel(*net, *world, {.bucket_bytes = 8192, .first_bucket_bytes = 8192, .parity_every = 100});
  const auto optimizer = make_optimizer(parallel, "one_bit", 20);
  EXPECT_EQ(parallel.reducer().exchanges().layout().buckets.size(), static_cast<std::size_t>(kBranches));
  const std::int64_t steps = std::stoll(given("TRAIN_STEPS"));
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    shuffled_loss(net, step, world->rank(), order).backward();
    optimizer->step();
  }
  std::printf("\nSHARED %s\n", state_text(parallel, *optimizer, "xmv").c_str());
}

class TrainGloo : public testing::TestWithParam<int> {};

TEST_P(TrainGloo, DenseIsAdamWOnTheJoinedBatch) {
  expect_body_passes(GetParam(), "DenseAgainstOneProcess");
}

TEST_P(TrainGloo, CompressedTrainingHasTheBitsOfRanksAsThreads) {
  for (const char* kind : {"int4", "one_bit"}) expect_bits_of_threads(GetParam(), kind);
}

// A seed of its own in every run, unless one is given to repeat a failure. Most steps where most ranks are.
TEST_P(TrainGloo, BucketsThatAreReadyInAnyOrderNeitherHangNorDiffer) {
  std::string seed = given("THINWIRE_TEST_SEED");
  if (seed.empty()) seed = std::to_string(std::random_device{}() % 1'000'000);
  SCOPED_TRACE("THINWIRE_TEST_SEED=" + seed);
  const std::string steps = GetParam() == 4 ? "300" : "60";
  const auto results =
      expect_body_passes(GetParam(), "ShuffledBuckets", {{"TRAIN_SEED", seed}, {"TRAIN_STEPS", steps}}, 500'000);
  for (const RankResult& result : results)
    EXPECT_EQ(lines_of(result.output, "SHARED"), lines_of(results[0].output, "SHARED"));
  EXPECT_EQ(lines_of(results[0].output, "SHARED").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Worlds, TrainGloo, testing::Values(2, 3, 4), testing::PrintToStringParamName());

}  // namespace
}  // namespace thinwire::tests
