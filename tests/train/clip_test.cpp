// Clipping means what dense clipping means: the norm of the mean gradient decides.
#include "thinwire/train/ddp/clip.hpp"

#include <gtest/gtest.h>

#include "tests/train/exchange_ranks.hpp"
#include "thinwire/train/ddp/norm_sketch.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

const std::vector<Shape> kShapes{{60, 70}, {40}, {50, 90}};

double norm_of(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const torch::Tensor& one : tensors) sum += one.to(torch::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

// Rank r's gradient is the r-th unit vector: local norms are 1, the norm of the mean is 1 / sqrt(8).
void orthogonal_case(const std::string& codec, std::int64_t freeze_step, const std::string& stage) {
  on_ranks(8, [&](comm::World& world) {
    Vectors net(std::vector<Shape>{{64, 64}});
    DataParallel parallel(*net, world, {.codec = codec, .max_grad_norm = 0.5});
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    if (freeze_step < 0) {
      optimizer = std::make_unique<Sgd>(parallel);
    } else {
      optimizer = std::make_unique<OneBitAdam>(parallel, OneBitAdamSettings{.freeze_step = freeze_step});
    }
    torch::Tensor gradient = torch::zeros({64, 64});
    gradient.view(-1)[500 * world.rank() + 3] = 1.0;
    for (int step = 0; step < 4; ++step) {
      optimizer->zero_grad();
      loss_with(net, {gradient}).backward();
      optimizer->step();
      EXPECT_EQ(parallel.last_step().clip_factor, 1.0) << codec << ", step " << step;
      EXPECT_NEAR(parallel.last_step().grad_norm, 1 / std::sqrt(8.0), 0.02) << codec << ", step " << step;
    }
    EXPECT_EQ(parallel.last_step().optimizer_stage, stage);
  });
}

TEST(Clipping, OrthogonalGradientsAreNotOverclipped) {
  orthogonal_case("fp32", -1, "dense");
  orthogonal_case("int4", -1, "dense");
  orthogonal_case("fp32", 1000, "warm_up");
  orthogonal_case("fp32", 2, "one_bit");
}

TEST(Clipping, DenseEqualsTorchOnTheMeanGradient) {
  for (const double theta : {0.01, 0.7, 1e6}) {
    Vectors reference(kShapes);
    torch::optim::SGD oracle(reference->parameters(), torch::optim::SGDOptions(0.1));
    for (int step = 0; step < 4; ++step) {
      oracle.zero_grad();
      for (int rank = 0; rank < 3; ++rank) (loss_with(reference, random_gradients(kShapes, step, rank)) / 3).backward();
      torch::nn::utils::clip_grad_norm_(reference->parameters(), theta);
      oracle.step();
    }
    on_ranks(3, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.max_grad_norm = theta});
      Sgd optimizer(parallel, {.lr = 0.1});
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
        optimizer.step();
      }
      for (std::size_t i = 0; i < kShapes.size(); ++i) {
        EXPECT_TRUE(torch::allclose(net->list[i], reference->list[i], 1e-5, 1e-6)) << theta;
      }
    });
  }
}

// The norm that compressed stages clip by, against the exact one.
TEST(Clipping, TheSketchedNormIsWithinFourPerCent) {
  for (const int ranks : {1, 2, 4}) {
    on_ranks(ranks, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.codec = "int4", .max_grad_norm = 1e9});
      Sgd optimizer(parallel, {.lr = 1e-3});
      for (int step = 0; step < 12; ++step) {
        optimizer.zero_grad();
        loss_with(net, random_gradients(kShapes, step, world.rank())).backward();
        optimizer.step();
        std::vector<torch::Tensor> mean;
        for (std::size_t i = 0; i < kShapes.size(); ++i) mean.push_back(torch::zeros(kShapes[i]));
        for (int rank = 0; rank < ranks; ++rank) {
          const auto gradients = random_gradients(kShapes, step, rank);
          for (std::size_t i = 0; i < kShapes.size(); ++i) mean[i] += gradients[i] / ranks;
        }
        EXPECT_NEAR(parallel.last_step().grad_norm, norm_of(mean), 0.04 * norm_of(mean)) << "step " << step;
      }
    });
  }
}

// Constant gradients, the same everywhere: what arrives has the norm that was asked for.
TEST(Clipping, WhatArrivesInCompressedStagesIsClipped) {
  for (const ClipMode mode : {ClipMode::kExact, ClipMode::kPredicted}) {
    on_ranks(2, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.codec = "int8", .max_grad_norm = 3.0, .clip_mode = mode});
      Sgd optimizer(parallel, {.lr = 1e-3});
      const auto gradients = random_gradients(kShapes, 0, 0);
      ASSERT_GT(norm_of(gradients), 50);
      for (int step = 0; step < 6; ++step) {
        const std::vector<torch::Tensor> before{net->list[0].detach().clone(), net->list[1].detach().clone(),
                                                net->list[2].detach().clone()};
        optimizer.zero_grad();
        loss_with(net, gradients).backward();
        optimizer.step();
        std::vector<torch::Tensor> moved;
        for (std::size_t i = 0; i < before.size(); ++i) moved.push_back((before[i] - net->list[i].detach()) / 1e-3);
        EXPECT_NEAR(norm_of(moved), 3.0, 0.2) << "step " << step;
      }
    });
  }
}

TEST(Clipping, ASpikeIsClippedInItsOwnStep) {
  for (const ClipMode mode : {ClipMode::kExact, ClipMode::kPredicted}) {
    on_ranks(2, [&](comm::World& world) {
      Vectors net(kShapes);
      DataParallel parallel(*net, world, {.codec = "int8", .max_grad_norm = 120.0, .clip_mode = mode});
      Sgd optimizer(parallel, {.lr = 1e-4});
      for (int step = 0; step < 8; ++step) {
        optimizer.zero_grad();
        auto gradients = random_gradients(kShapes, step, 0);  // of norm 93
        if (step == 6) {
          for (torch::Tensor& one : gradients) one *= 50;
        }
        loss_with(net, gradients).backward();
        // Body gradients were multiplied before they were encoded; the dense bias of 40 elements is multiplied later.
        const double arrived = norm_of({net->list[0].grad(), net->list[2].grad()});
        if (step == 6) {
          EXPECT_LT(arrived, 1.2 * 120.0);
          EXPECT_GT(arrived, 0.8 * 120.0);
        } else {
          EXPECT_GT(arrived, 80) << "step " << step << " needs no clipping";
        }
        optimizer.step();
      }
    });
  }
}

// Shadowed steps bring zeros: they teach the predictor nothing, so the first step after a join is not over-clipped.
TEST(Clipping, ShadowedStepsDoNotSpoilThePrediction) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.codec = "int8", .max_grad_norm = 1e6, .clip_mode = ClipMode::kPredicted});
    Sgd optimizer(parallel, {.lr = 1e-4});
    const auto step_with = [&](int step) {
      optimizer.zero_grad();
      loss_with(net, random_gradients(kShapes, step, 0)).backward();
      optimizer.step();
    };
    for (int step = 0; step < (world.rank() == 0 ? 24 : 4); ++step) step_with(step);
    EXPECT_EQ(parallel.join([&] { optimizer.step(); }), world.rank() == 0 ? 0 : 20);
    const NormPredictor& predictor = parallel.reducer().pipeline().predictor();
    const double norm = norm_of(random_gradients(kShapes, 30, 0));
    for (std::size_t bucket = 0; bucket < predictor.bucket_norms().size(); ++bucket) {
      const double predicted = predictor.predict(bucket, predictor.bucket_norms()[bucket]);
      EXPECT_GT(predicted, 0.3 * norm) << "rank " << world.rank();
      EXPECT_LT(predicted, 1.5 * norm) << "rank " << world.rank();
      EXPECT_GT(predictor.bucket_norms()[bucket], 1.0) << "rank " << world.rank();
    }
  });
}

// Squares that overflow float32 are no reason to skip a step, nor to clip a gradient to nothing.
TEST(Clipping, NormsBeyondTheRangeOfFloatAreRight) {
  on_ranks(2, [&](comm::World& world) {
    Vectors net(kShapes);
    DataParallel parallel(*net, world, {.max_grad_norm = 2.0});
    Sgd optimizer(parallel, {.lr = 1.0});
    const torch::Tensor before = net->list[0].detach().clone();
    const auto gradients = random_gradients(kShapes, 0, 0, 1e25);
    loss_with(net, gradients).backward();
    optimizer.step();
    EXPECT_FALSE(parallel.last_step().skipped);
    EXPECT_NEAR(parallel.last_step().grad_norm / norm_of(gradients), 1.0, 1e-5);
    EXPECT_NEAR(norm_of({before - net->list[0].detach()}), 2.0 * norm_of({gradients[0]}) / norm_of(gradients), 1e-3);
  });
}

TEST(NormSketch, IsLinearAndIndependentOfTheCut) {
  const torch::Tensor a = noise(1, {5000}), b = noise(2, {5000});
  const auto span = [](const torch::Tensor& t, std::int64_t from, std::int64_t to) {
    return std::span<const float>(t.const_data_ptr<float>() + from, static_cast<std::size_t>(to - from));
  };
  NormSketch whole, parts, other;
  whole.add(3, 0, span(a, 0, 5000));
  parts.add(3, 2048, span(a, 2048, 5000));
  parts.add(3, 0, span(a, 0, 2048));
  EXPECT_TRUE(std::equal(whole.lanes().begin(), whole.lanes().end(), parts.lanes().begin()));
  const torch::Tensor sum = a + b;
  parts.add(3, 0, span(b, 0, 5000));
  other.add(3, 0, span(sum, 0, 5000));
  for (std::int64_t i = 0; i < NormSketch::kLanes; ++i) ASSERT_NEAR(parts.lanes()[i], other.lanes()[i], 1e-5);
}

TEST(NormSketch, EstimatesNormsOfAllKinds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    NormSketch sketch;
    double norm2 = 0;
    for (int parameter = 0; parameter < 4; ++parameter) {
      torch::Tensor values = noise(100 * seed + parameter, {20'000}) * (parameter + 1);
      if (parameter == 2) values.clamp_(0);              // all of one sign
      if (parameter == 3) values = values.pow(3) * 0.1;  // heavy tails
      sketch.add(parameter, 0, {values.const_data_ptr<float>(), 20'000});
      norm2 += values.to(torch::kDouble).square().sum().item<double>();
    }
    EXPECT_NEAR(sketch.norm(), std::sqrt(norm2), 0.04 * std::sqrt(norm2)) << "seed " << seed;
  }
}

TEST(NormPredictor, ScalesTheSmoothedNormByTheBucketsNorm) {
  NormPredictor predictor(2);
  EXPECT_FALSE(predictor.ready());
  for (int step = 0; step < 20; ++step) predictor.observe(10, {6, 8});
  EXPECT_TRUE(predictor.ready());
  EXPECT_NEAR(predictor.predict(0, 6), 10, 1e-9);
  EXPECT_NEAR(predictor.predict(1, 80), 100, 1e-9);
  EXPECT_EQ(clip_factor(5, 10), 1.0F);
  EXPECT_EQ(clip_factor(20, 10), 0.5F);
  EXPECT_EQ(clip_factor(20, 0), 1.0F) << "off";
}

}  // namespace
}  // namespace thinwire::train
