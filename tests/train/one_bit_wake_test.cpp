// Elements without a variance at the freeze: they do not drift, and a later gradient wakes them.
#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"

namespace thinwire::train {
namespace {

// A body matrix used like a table: rows 10 to 19 get no gradient. Block borders (2048 elements) do not fall on rows.
const std::vector<Shape> kShapes{{70, 66}, {40}, {50, 90}};

std::vector<torch::Tensor> gradients(std::int64_t step, int rank, bool wake = false) {
  auto all = random_gradients(kShapes, step, rank);
  all[0].slice(0, 10, 20).zero_();
  if (wake && rank == 1) all[0][15].fill_(0.5);
  return all;
}

void step_with(const Vectors& net, torch::optim::Optimizer& optimizer, const std::vector<torch::Tensor>& given) {
  optimizer.zero_grad();
  loss_with(net, given).backward();
  optimizer.step();
}

torch::Tensor dead_rows(const Vectors& net) {
  return net->list[0].detach().slice(0, 10, 20).clone();
}

TEST(FrozenZeros, DoNotDrift) {
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    OneBitAdam optimizer(parallel, {.lr = 1e-2, .weight_decay = 0.1, .freeze_step = 4});
    for (int step = 0; step < 4; ++step) step_with(net, optimizer, gradients(step, world.rank()));
    ASSERT_TRUE(optimizer.frozen());
    const torch::Tensor still = dead_rows(net);
    const torch::Tensor start = net->list[0].detach().clone();
    for (int step = 4; step < 44; ++step) step_with(net, optimizer, gradients(step, world.rank()));
    EXPECT_TRUE(torch::equal(dead_rows(net), still)) << "not even by weight decay";
    EXPECT_EQ(unsent(parallel, 0).slice(0, 10, 20).abs().max().item<double>(), 0.0);
    EXPECT_EQ(kept(optimizer, "m")[0].slice(0, 10, 20).abs().max().item<double>(), 0.0);
    EXPECT_EQ(optimizer.woken_parameters(), 0);
    const torch::Tensor moved = (net->list[0].detach() - start).abs();
    EXPECT_GT(moved.slice(0, 0, 10).min().item<double>(), 0.0) << "the other rows are trained";
    EXPECT_LT(moved.max().item<double>(), 10.0) << "and none explodes";
  });
}

TEST(FrozenZeros, AreOutsideTheScale) {
  torch::Tensor means[2];
  for (const bool with_zeros : {false, true}) {  // one block of values, and the same block with as many zeros between
    on_ranks(1, [&](comm::World& world) {
      Vectors net(std::vector<Shape>{{32, 64}});
      DataParallel parallel(*net, world);
      OneBitAdam optimizer(parallel, {.beta1 = 0, .warmup_codec = "fp32", .freeze_step = 2});
      torch::Tensor gradient = torch::full({2048}, 0.5);
      if (with_zeros) gradient.slice(0, 1, 2048, 2).zero_();
      for (int step = 0; step < 4; ++step) step_with(net, optimizer, {gradient.view({32, 64})});
      means[with_zeros] = kept(optimizer, "m")[0].view(-1).slice(0, 0, 2048, 2).clone();
    });
  }
  EXPECT_LT((means[0] - 0.5).abs().max().item<double>(), 1e-6);
  EXPECT_LT((means[1] - 0.5).abs().max().item<double>(), 1e-6) << "zeros have pulled the scale down";
}

TEST(FrozenZeros, ALaterGradientMovesTheParameterToALiveVariance) {
  std::vector<StateBits> results(3);
  on_ranks(3, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.bucket_bytes = 16384, .first_bucket_bytes = 8192, .parity_every = 1});
    OneBitAdam optimizer(parallel, {.lr = 1e-2, .weight_decay = 0, .freeze_step = 4});
    for (int step = 0; step < 8; ++step) step_with(net, optimizer, gradients(step, world.rank()));
    const torch::Tensor still = dead_rows(net);
    step_with(net, optimizer, gradients(8, world.rank(), true));
    EXPECT_TRUE(torch::equal(dead_rows(net), still)) << "from the next step on";
    EXPECT_EQ(optimizer.woken_parameters(), 1);
    const ParameterRoute& route = parallel.reducer().exchanges().route(0);
    EXPECT_EQ(route.route, Route::kFeedback);
    EXPECT_EQ(route.codec, "int8:block=128");
    EXPECT_EQ(parallel.reducer().exchanges().route(2).route, Route::kMomentum) << "only that parameter";
    const torch::Tensor before = net->list[0].detach().clone();
    for (int step = 9; step < 15; ++step) step_with(net, optimizer, gradients(step, world.rank(), true));
    EXPECT_FALSE(torch::equal(dead_rows(net)[5], still[5])) << "row 15 is trained";
    EXPECT_LT((net->list[0].detach() - before).abs().max().item<double>(), 2.0) << "nothing explodes";
    EXPECT_EQ(optimizer.woken_parameters(), 1);
    for (const auto& [name, bits] : state_bits(parallel, optimizer)) {
      if (name[0] != 'e' && name[0] != 's') results[world.rank()][name] = bits;
    }
  });
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

}  // namespace
}  // namespace thinwire::train
