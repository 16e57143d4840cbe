// Sgd against torch's, and what happens to residuals when the learning rate changes.
#include "thinwire/train/optim/sgd.hpp"

#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <sstream>

#include "tests/train/exchange_ranks.hpp"
#include "tests/train/models.hpp"

namespace thinwire::train {
namespace {

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}};

TEST(Sgd, DenseEqualsTorch) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double weight_decay : {0.0, 0.1}) {
      Vectors reference(kShapes);
      torch::optim::SGD oracle(reference->parameters(),
                               torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(weight_decay));
      for (int step = 0; step < 8; ++step) {
        oracle.zero_grad();
        for (int rank = 0; rank < 3; ++rank)
          (loss_with(reference, random_gradients(kShapes, step, rank)) / 3).backward();
        oracle.step();
      }
      on_ranks(3, [&](comm::World& world) {
        Vectors net(kShapes);
        DataParallel parallel(*net, world);
        Sgd optimizer(parallel, {.lr = 0.1, .momentum = momentum, .weight_decay = weight_decay});
        for (int step = 0; step < 8; ++step) {
          optimizer.zero_grad();
          loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
          optimizer.step();
        }
        for (std::size_t i = 0; i < kShapes.size(); ++i) {
          EXPECT_TRUE(torch::allclose(net->list[i], reference->list[i], 1e-5, 1e-6)) << momentum << " " << weight_decay;
        }
      });
    }
  }
}

double& lr_of(Sgd& optimizer) {
  return static_cast<SgdOptions&>(optimizer.param_groups()[0].options()).settings().lr;
}

// sum eta_t y_t + eta_T E_T = sum eta_t mean x_t, where the first sum is how far the parameter has moved.
void check_identity(const std::vector<double>& rates, const std::string& codec) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    const torch::Tensor start = net->list[0].detach().to(torch::kDouble);
    DataParallel parallel(*net, world, {.codec = codec});
    Sgd optimizer(parallel, {.lr = rates[0]});
    torch::Tensor wanted = torch::zeros(kShapes[0], torch::kDouble);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      lr_of(optimizer) = rates[step];
      optimizer.zero_grad();
      const auto at = static_cast<std::int64_t>(step);
      loss_with(net, random_gradients(kShapes, at, world.rank())).backward();
      optimizer.step();
      wanted += rates[step] * (random_gradients(kShapes, at, 0)[0] + random_gradients(kShapes, at, 1)[0]) / 2;
      torch::Tensor held = unsent(parallel, 0).to(torch::kDouble);
      parallel.all_reduce_mean(held);  // mean over ranks of each one's share
      const torch::Tensor moved = start - net->list[0].detach().to(torch::kDouble);
      EXPECT_LT((moved + rates[step] * 2 * held - wanted).abs().max().item<double>(), 2e-5)
          << codec << ", step " << step << ", lr " << rates[step];
    }
  });
}

TEST(Sgd, ResidualsFollowTheLearningRate) {
  for (const char* codec : {"int4", "one_bit"}) {
    check_identity({0.1, 0.1, 0.1, 0.1}, codec);
    check_identity({0.1, 0.1, 0.05, 0.2, 0.2, 0.001, 0.3}, codec);
  }
}

TEST(Sgd, ALearningRateOfZeroSendsWhatIsHeldBack) {
  for (const char* codec : {"int4", "one_bit"}) {
    check_identity({0.1, 0.1, 0.1, 0.0}, codec);
    check_identity({0.1, 0.1, 0.0, 0.0, 0.0, 0.1, 0.1}, codec);
    check_identity({0.0, 0.0, 0.1, 0.05, 0.0, 0.02}, codec);
  }
}

// What was flushed for a step that is then skipped waits for the next one, also across a checkpoint.
TEST(Sgd, AFlushBeforeASkippedStepIsNotLost) {
  std::vector<torch::Tensor> results[2];
  for (const bool reload : {false, true}) {
    results[reload].resize(2);
    on_ranks(2, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.codec = "one_bit"});
      auto optimizer = std::make_unique<Sgd>(parallel, SgdSettings{.lr = 0.1});
      const auto step_with = [&](std::vector<torch::Tensor> gradients) {
        optimizer->zero_grad();
        loss_with(net, gradients).backward();
        optimizer->step();
      };
      for (int step = 0; step < 3; ++step) step_with(random_gradients(kShapes, step, world.rank()));
      const torch::Tensor held = net->list[0].detach().clone();
      lr_of(*optimizer) = 0.0;
      auto spoilt = random_gradients(kShapes, 3, world.rank());
      spoilt[1][0] = std::numeric_limits<float>::infinity();
      step_with(spoilt);
      EXPECT_TRUE(torch::equal(net->list[0], held));
      if (reload) {
        std::stringstream bytes;
        torch::save(*optimizer, bytes);
        optimizer.reset();
        optimizer = std::make_unique<Sgd>(parallel, SgdSettings{.lr = 0.0});
        torch::load(*optimizer, bytes);
      }
      step_with(random_gradients(kShapes, 4, world.rank()));
      EXPECT_FALSE(torch::equal(net->list[0], held)) << "the flush arrives with the next step";
      results[reload][world.rank()] = flat_parameters(*net);
    });
  }
  EXPECT_TRUE(torch::equal(results[0][0], results[0][1]));
  EXPECT_TRUE(torch::equal(results[0][0], results[1][0]));
}

TEST(Sgd, WithMomentumResidualsAreNotRescaled) {
  StateBits constant, changing;
  for (const bool change : {false, true}) {
    on_ranks(2, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.codec = "int4"});
      Sgd optimizer(parallel, {.lr = 0.1, .momentum = 0.9});
      for (int step = 0; step < 5; ++step) {
        if (change) lr_of(optimizer) = 0.1 / (step + 1);
        optimizer.zero_grad();
        loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
        optimizer.step();
      }
      if (world.rank() == 0) (change ? changing : constant) = state_bits(parallel, optimizer);
    });
  }
  for (const auto& [name, bits] : constant) {
    if (name[0] == 'x') continue;
    EXPECT_EQ(changing.at(name), bits) << name;
  }
  EXPECT_NE(changing.at("x of p0"), constant.at("x of p0"));
}

}  // namespace
}  // namespace thinwire::train
