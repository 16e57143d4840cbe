#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/training/optimizer.hpp"

namespace examples {
namespace {

constexpr WarmUpCosineShape kShape{.peak = 1e-3, .end = 1e-4, .warmup_steps = 10, .total_steps = 110};

TEST(WarmUpCosine, RisesToThePeakAndEndsAtTheEnd) {
  EXPECT_DOUBLE_EQ(warm_up_cosine(kShape, 0), 1e-4);
  EXPECT_DOUBLE_EQ(warm_up_cosine(kShape, 9), 1e-3);
  EXPECT_DOUBLE_EQ(warm_up_cosine(kShape, 60), 5.5e-4);
  EXPECT_DOUBLE_EQ(warm_up_cosine(kShape, 110), 1e-4);
  for (std::int64_t step = 10; step < 110; ++step)
    EXPECT_GT(warm_up_cosine(kShape, step), warm_up_cosine(kShape, step + 1));
}

// What the optimizer really uses in each step, also when the run starts in the middle.
TEST(WarmUpCosine, SetsTheRateOfTheStepThatComesNext) {
  torch::nn::Linear layer(1, 1);
  for (const std::int64_t first : {0, 9, 57}) {
    torch::optim::SGD optimizer(layer->parameters(), 123.0);
    WarmUpCosine schedule(optimizer, kShape, first);
    for (std::int64_t step = first; step < first + 20; ++step) {
      EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), warm_up_cosine(kShape, step)) << step;
      optimizer.step();
      schedule.step();
    }
  }
}

}  // namespace
}  // namespace examples
