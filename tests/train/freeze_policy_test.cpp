// When the variance may be frozen, and what freezing does to it.
#include "thinwire/train/optim/freeze_policy.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "thinwire/train/optim/frozen_variance.hpp"

namespace thinwire::train {
namespace {

// Feeds norms by step until the policy freezes; -1: never within `steps`.
std::int64_t frozen_at(FreezePolicy& policy, std::int64_t steps, const std::function<double(std::int64_t)>& norm,
                       const std::function<double(std::int64_t)>& lr) {
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (policy.fixed(step)) return step;
    if (policy.wants_variance(step, lr(step)) && policy.measured(step, norm(step))) return step;
  }
  return -1;
}

double constant(std::int64_t /*step*/) {
  return 1.0;
}

TEST(FreezePolicy, ComparesOverTheMemoryOfTheVariance) {
  EXPECT_EQ(FreezePolicy({.beta2 = 0.999}).interval(), 1000);
  EXPECT_EQ(FreezePolicy({.beta2 = 0.99}).interval(), 100);
  EXPECT_EQ(FreezePolicy({.total_steps = 2000, .beta2 = 0.999}).interval(), 100) << "a twentieth of a short run";
  EXPECT_EQ(FreezePolicy({.total_steps = 1'000'000, .beta2 = 0.999}).interval(), 1000);
  EXPECT_EQ(FreezePolicy({.total_steps = 5, .beta2 = 0.999}).interval(), 1);
}

TEST(FreezePolicy, NeedsTwoMeasurements) {
  FreezePolicy policy({.lr_warmup_steps = 0, .beta2 = 0.9});
  EXPECT_EQ(frozen_at(policy, 100, constant, constant), 20);
  EXPECT_EQ(policy.ratio(), 1.0);
}

TEST(FreezePolicy, WaitsWhileTheVarianceGrowsOrShrinks) {
  for (const double rate : {1.05, 1 / 1.05}) {
    FreezePolicy policy({.lr_warmup_steps = 0, .beta2 = 0.9});
    const auto norm = [&](std::int64_t step) { return std::pow(rate, std::min<std::int64_t>(step, 50) / 10); };
    EXPECT_EQ(frozen_at(policy, 200, norm, constant), 60) << rate;
  }
}

TEST(FreezePolicy, TheBorderIsNinetySixPerCentBothWays) {
  for (const double ratio : {0.9601, 1 / 0.9601, 0.9599, 1 / 0.9599}) {
    FreezePolicy policy({.lr_warmup_steps = 0, .beta2 = 0.9});
    EXPECT_FALSE(policy.measured(10, 1.0));
    EXPECT_EQ(policy.measured(20, ratio), ratio == 0.9601 || ratio == 1 / 0.9601) << ratio;
  }
}

TEST(FreezePolicy, WaitsForTheLearningRateToStopRising) {
  FreezePolicy policy({.beta2 = 0.9});
  const auto warm_up = [](std::int64_t step) { return 1e-3 * static_cast<double>(std::min<std::int64_t>(step, 45)); };
  EXPECT_EQ(frozen_at(policy, 200, constant, warm_up), 60) << "risen last at 45, one interval is ten steps";
  FreezePolicy told({.lr_warmup_steps = 75, .beta2 = 0.9});
  EXPECT_EQ(frozen_at(told, 200, constant, warm_up), 80);
}

TEST(FreezePolicy, AFixedStepIsObeyed) {
  FreezePolicy policy({.freeze_step = 7, .beta2 = 0.9});
  EXPECT_EQ(frozen_at(policy, 100, constant, constant), 7);
}

TEST(FreezePolicy, AVarianceOfZeroIsNotStable) {
  FreezePolicy policy({.lr_warmup_steps = 0, .beta2 = 0.9});
  EXPECT_EQ(frozen_at(
                policy, 100, [](std::int64_t) { return 0.0; }, constant),
            -1);
}

TEST(FreezePolicy, WarnsOnceWhenAFifthOfTheRunIsOver) {
  FreezePolicy policy({.total_steps = 100, .beta2 = 0.9});
  EXPECT_FALSE(policy.late(19));
  EXPECT_TRUE(policy.late(20));
  EXPECT_FALSE(policy.late(21));
  FreezePolicy unknown({.beta2 = 0.9});
  EXPECT_FALSE(unknown.late(1'000'000));
  FreezePolicy shortest({.total_steps = 1, .beta2 = 0.9});
  EXPECT_FALSE(shortest.late(1)) << "there is nothing left to warn for";
}

TEST(FreezePolicy, GoesOnFromARestoredState) {
  const auto norm = [](std::int64_t step) { return step < 50 ? static_cast<double>(step) : 50.0; };
  FreezePolicy whole({.beta2 = 0.9}), first({.beta2 = 0.9}), second({.beta2 = 0.9});
  const std::int64_t want = frozen_at(whole, 200, norm, constant);
  EXPECT_EQ(frozen_at(first, 35, norm, constant), -1);
  second.restore(first.state());
  std::int64_t got = -1;
  for (std::int64_t step = 36; step <= 200 && got < 0; ++step) {
    if (second.wants_variance(step, 1.0) && second.measured(step, norm(step))) got = step;
  }
  EXPECT_EQ(got, want);
}

// Against the definition, one element at a time.
TEST(FrozenVariance, IsTheRootWithAFloorPerBlock) {
  auto generator = at::detail::createCPUGenerator(3);
  torch::Tensor variance = torch::randn({300}, generator).pow(4);
  variance.slice(0, 0, 300, 7).zero_();
  variance.slice(0, 128, 256).zero_();
  torch::Tensor root = variance.clone();
  const FrozenVariance frozen(root, 128, 0.5);
  for (std::int64_t i = 0; i < 300; ++i) {
    double sum = 0;
    int active = 0;
    for (std::int64_t j = i / 128 * 128; j < std::min<std::int64_t>(i / 128 * 128 + 128, 300); ++j) {
      const double v = variance[j].item<double>();
      sum += v;
      active += v > 0 ? 1 : 0;
    }
    const double own = variance[i].item<double>();
    const double want = own > 0 ? std::max(std::sqrt(own), 0.5 * std::sqrt(sum / active)) : 0.0;
    EXPECT_NEAR(root[i].item<double>(), want, 1e-6 * (1 + want)) << i;
    EXPECT_EQ((frozen.active()[i / 64] >> (i % 64) & 1U) != 0, own > 0) << i;
  }
  const FrozenVariance again(root);
  EXPECT_TRUE(std::equal(again.active().begin(), again.active().end(), frozen.active().begin()));
}

TEST(FrozenVariance, HasNoMaskWhenEveryElementTakesPart) {
  torch::Tensor root = torch::ones({100});
  EXPECT_TRUE(FrozenVariance(root, 64, 0.03).active().empty());
}

}  // namespace
}  // namespace thinwire::train
