// 1-bit Adam: warm-up against torch's AdamW, the freeze, and the identity of the second stage.
#include "thinwire/train/optim/one_bit_adam.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/train/exchange_ranks.hpp"
#include "tests/train/models.hpp"
#include "thinwire/base/error.hpp"

namespace thinwire::train {
namespace {

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}};

void step_with(const Vectors& net, torch::optim::Optimizer& optimizer, const std::vector<torch::Tensor>& gradients) {
  optimizer.zero_grad();
  loss_with(net, gradients).backward();
  optimizer.step();
}

// E = mean_i e_i + s of a parameter, from all ranks.
torch::Tensor held_back(DataParallel& parallel, int parameter) {
  torch::Tensor share = unsent(parallel, parameter).to(torch::kDouble);
  parallel.all_reduce_mean(share);
  return share * parallel.size();
}

torch::Tensor mean_gradient(int parameter, std::int64_t step, int ranks) {
  torch::Tensor sum = torch::zeros(kShapes[parameter], torch::kDouble);
  for (int rank = 0; rank < ranks; ++rank) sum += random_gradients(kShapes, step, rank)[parameter];
  return sum / ranks;
}

TEST(OneBitAdam, WarmUpInFp32EqualsTorchAdamW) {
  constexpr int kSteps = 12;
  Vectors reference(kShapes);
  torch::optim::AdamW oracle(reference->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  torch::optim::StepLR schedule(oracle, 4, 0.5);
  for (int step = 0; step < kSteps; ++step) {
    oracle.zero_grad();
    for (int rank = 0; rank < 2; ++rank) (loss_with(reference, random_gradients(kShapes, step, rank)) / 2).backward();
    oracle.step();
    schedule.step();
  }
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    OneBitAdam optimizer(parallel, {.lr = 1e-2, .weight_decay = 0.1, .warmup_codec = "fp32", .freeze_step = 1000});
    torch::optim::StepLR own_schedule(optimizer, 4, 0.5);
    for (int step = 0; step < kSteps; ++step) {
      step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      own_schedule.step();
    }
    EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), oracle.param_groups()[0].options().get_lr(), 1e-12);
    EXPECT_LT(relative_error(flat_parameters(*net), flat_parameters(*reference)), 1e-5);
  });
}

// m_t = beta1 m_{t-1} + (1 - beta1) mean g + E_{t-1} - E_t : nothing is lost and nothing comes from elsewhere.
void check_second_stage(int ranks, const std::string& codec, double max_norm = 0) {
  on_ranks(ranks, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.bucket_bytes = 8192, .first_bucket_bytes = 8192, .max_grad_norm = max_norm});
    OneBitAdam optimizer(parallel, {.beta1 = 0.8, .codec = codec, .freeze_step = 3});
    for (int step = 0; step < 10; ++step) {
      const bool second = optimizer.frozen();
      const std::vector<torch::Tensor> m = kept(optimizer, "m");
      const std::vector<torch::Tensor> e{held_back(parallel, 0), {}, held_back(parallel, 2)};
      step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      if (!second) continue;
      const std::vector<torch::Tensor> m_now = kept(optimizer, "m");
      for (int i : {0, 2}) {
        const torch::Tensor input = mean_gradient(i, step, ranks) * parallel.last_step().clip_factor;
        const torch::Tensor want = 0.8 * m[i].to(torch::kDouble) + 0.2 * input + e[i] - held_back(parallel, i);
        EXPECT_LT((m_now[i].to(torch::kDouble) - want).abs().max().item<double>(), 1e-5)
            << codec << ", " << ranks << " ranks, step " << step << ", p" << i;
      }
    }
  });
}

TEST(OneBitAdam, TheSecondStageLosesNothing) {
  for (const int ranks : {1, 2, 3, 8}) check_second_stage(ranks, "one_bit");
  check_second_stage(3, "one_bit:scale=mean_abs");
  check_second_stage(2, "one_bit", 0.5);
}

// With a constant gradient Adam's step is lr * sign(g), before the freeze and after it: the lossless codec shows a
// jump.
TEST(OneBitAdam, TheFreezeMakesNoJump) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    OneBitAdam optimizer(
        parallel,
        {.lr = 1e-2, .weight_decay = 0, .warmup_codec = "fp32", .codec = "fp32", .freeze_step = 4, .v_floor = 0});
    const auto gradients = random_gradients(kShapes, 0, 0);
    for (int step = 0; step < 10; ++step) {
      const torch::Tensor before = net->list[0].detach().clone();
      step_with(net, optimizer, gradients);
      const torch::Tensor want = before - 1e-2 * gradients[0].sign();
      EXPECT_LT((net->list[0] - want).abs().max().item<double>(), 2e-5) << "step " << step;
    }
    EXPECT_EQ(optimizer.frozen_at(), 4);
  });
}

// Residuals change from gradient units to momentum units.
TEST(OneBitAdam, TheFreezeScalesResiduals) {
  torch::Tensor held[2];
  for (const bool freeze : {false, true}) {
    on_ranks(2, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world);
      OneBitAdam optimizer(parallel, {.beta1 = 0.75, .freeze_step = freeze ? 4 : 1000});
      for (int step = 0; step < 4; ++step) step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      const torch::Tensor all = held_back(parallel, 0);
      if (world.rank() == 0) held[freeze] = all;
    });
  }
  EXPECT_GT(held[0].abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(torch::equal(held[1], held[0] * 0.25)) << "a power of two: exact";
}

TEST(OneBitAdam, RanksHoldTheSameBitsInBothStages) {
  std::vector<StateBits> results(3);
  on_ranks(3, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.parity_every = 1});
    OneBitAdam optimizer(parallel, {.freeze_step = 5});
    for (int step = 0; step < 10; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      optimizer.step();
    }
    for (const auto& [name, bits] : state_bits(parallel, optimizer)) {
      if (name[0] != 'e' && name[0] != 's') results[world.rank()][name] = bits;
    }
  });
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
  EXPECT_EQ(results[0].count("v of first.weight"), 1U);
}

TEST(OneBitAdam, TheFrozenRootHasAFloorInEachBlock) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(std::vector<Shape>{{64, 64}});
    DataParallel parallel(*net, world);
    OneBitAdam optimizer(parallel, {.warmup_codec = "fp32", .freeze_step = 2, .v_floor = 0.25});
    torch::Tensor gradient = torch::ones({4096});
    gradient.slice(0, 0, 1000) = 1e-6;     // first block: far below its rms
    gradient.slice(0, 2048, 4096) = 1e-6;  // second block: small, but all alike
    for (int step = 0; step < 2; ++step) step_with(net, optimizer, {gradient.view({64, 64})});
    ASSERT_TRUE(optimizer.frozen());
    const torch::Tensor root = kept(optimizer, "v")[0].view(-1);
    const double rms = std::sqrt(1048.0 / 2048.0);
    EXPECT_NEAR(root[0].item<double>(), 0.25 * rms, 1e-5);
    EXPECT_NEAR(root[1500].item<double>(), 1.0, 1e-5);
    EXPECT_NEAR(root[3000].item<double>(), 1e-6, 1e-10) << "another block's rms is no floor here";
  });
}

// Two groups with their own lr and beta1; bucket memory is not shared, so beta1 may differ inside encode.
TEST(OneBitAdam, GroupsHaveTheirOwnBetasAndRates) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    const OneBitAdamSettings fast{.lr = 1e-2, .beta1 = 0.5, .weight_decay = 0, .freeze_step = 3};
    OneBitAdamSettings slow = fast;
    slow.lr = 0;
    slow.beta1 = 0.9;
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<torch::Tensor>{net->list[0], net->list[1]},
                        std::make_unique<OneBitAdamOptions>(fast));
    groups.emplace_back(std::vector<torch::Tensor>{net->list[2]}, std::make_unique<OneBitAdamOptions>(slow));
    OneBitAdam optimizer(parallel, groups, fast);
    const torch::Tensor still = net->list[2].detach().clone();
    for (int step = 0; step < 8; ++step) {
      const bool second = optimizer.frozen();
      const std::vector<torch::Tensor> m = kept(optimizer, "m");
      const std::vector<torch::Tensor> e{held_back(parallel, 0), {}, held_back(parallel, 2)};
      const torch::Tensor x0 = net->list[0].detach().clone();
      step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
      EXPECT_FALSE(torch::equal(net->list[0], x0));
      if (!second) continue;
      const std::vector<torch::Tensor> m_now = kept(optimizer, "m");
      for (int i : {0, 2}) {
        const double beta = i == 0 ? 0.5 : 0.9;
        const torch::Tensor want =
            beta * m[i].to(torch::kDouble) + (1 - beta) * mean_gradient(i, step, 2) + e[i] - held_back(parallel, i);
        EXPECT_LT((m_now[i].to(torch::kDouble) - want).abs().max().item<double>(), 1e-5)
            << "step " << step << ", p" << i;
      }
    }
    EXPECT_TRUE(torch::equal(net->list[2], still)) << "lr 0";
    for (const Bucket& bucket : parallel.reducer().exchanges().layout().buckets) {
      std::set<int> of;
      for (const auto& chunk : bucket.chunks) {
        for (const Piece& piece : chunk) of.insert(parallel.reducer().parameters()[piece.parameter].optimizer_group);
      }
      EXPECT_EQ(of.size(), 1U);
    }
  });
}

TEST(OneBitAdam, FreezesByItselfWhenTheVarianceIsStable) {
  std::vector<std::int64_t> frozen_at(2);
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    OneBitAdam optimizer(parallel, {.beta2 = 0.9});
    for (int step = 0; step < 60 && !optimizer.frozen(); ++step) {
      step_with(net, optimizer, random_gradients(kShapes, step, world.rank()));
    }
    frozen_at[world.rank()] = optimizer.frozen_at();
    EXPECT_NEAR(optimizer.variance_ratio(), 1, 0.04);
  });
  EXPECT_EQ(frozen_at[0], frozen_at[1]);
  EXPECT_GE(frozen_at[0], 20) << "two intervals of ten steps";
  EXPECT_LE(frozen_at[0], 50);
}

TEST(OneBitAdam, OneBitOfAGradientUnderALiveVarianceIsRefused) {
  on_ranks(1, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world);
    EXPECT_THROW(OneBitAdam(parallel, {.warmup_codec = "one_bit"}), Error);
  });
}

}  // namespace
}  // namespace thinwire::train
