// Buckets travel while backward still runs, and one bucket costs two collectives.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/train/ranks.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"

namespace thinwire::train {
namespace {

// The identity, whose backward runs a callback: a place in the middle of backward.
struct Probe : torch::autograd::Function<Probe> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::function<void()>* callback) {
    context->saved_data["callback"] = reinterpret_cast<std::int64_t>(callback);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    (*reinterpret_cast<const std::function<void()>*>(context->saved_data["callback"].toInt()))();
    return {gradients[0], torch::Tensor()};
  }
};

// Backward reaches `late`, then the probe, then `early`.
struct TwoStagesImpl : torch::nn::Module {
  TwoStagesImpl() {
    early = register_parameter("early", noise(1, {64, 64}, 0.1));
    late = register_parameter("late", noise(2, {64, 64}, 0.1));
  }
  torch::Tensor loss(int step, int rank, const std::function<void()>& in_backward) {
    const torch::Tensor x = noise(static_cast<std::uint64_t>(100 * step + rank), {8, 64});
    return Probe::apply(x.matmul(early), &in_backward).matmul(late).square().mean();
  }
  torch::Tensor early, late;
};
TORCH_MODULE(TwoStages);

// True once `condition` holds; false when it does not within 20 seconds.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Backward reaches `third` and `second`, then the probe, then `first`.
struct ThreeStagesImpl : torch::nn::Module {
  ThreeStagesImpl() {
    first = register_parameter("first", noise(1, {64, 64}, 0.1));
    second = register_parameter("second", noise(2, {64, 64}, 0.1));
    third = register_parameter("third", noise(3, {64, 64}, 0.1));
  }
  torch::Tensor loss(int step, int rank, const std::function<void()>& in_backward) {
    const torch::Tensor x = noise(static_cast<std::uint64_t>(100 * step + rank), {8, 64});
    return Probe::apply(x.matmul(first), &in_backward).matmul(second).matmul(third).square().mean();
  }
  torch::Tensor first, second, third;
};
TORCH_MODULE(ThreeStages);

// Rank 0 has all its buckets under way and comes to the norm while rank 1, late before the first bucket and again
// before the last, still needs rank 0's second hop of the one between.
TEST(Overlap, PredictedClippingWaitsForNoRankThatWaitsForIt) {
  on_ranks(
      2,
      [&](comm::World& world) {
        ThreeStages net;
        DataParallel parallel(*net, world,
                              {.bucket_bytes = 16'384,
                               .first_bucket_bytes = 16'384,
                               .max_grad_norm = 0.1,
                               .clip_mode = ClipMode::kPredicted});
        OneBitAdam optimizer(parallel, {.freeze_step = 4});
        const auto be_late = [&] {
          if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        };
        const std::function<void()> in_backward = be_late;
        for (int step = 0; step < 6; ++step) {
          optimizer.zero_grad();
          const torch::Tensor loss = net->loss(step, world.rank(), in_backward);
          be_late();
          loss.backward();
          optimizer.step();
        }
        EXPECT_EQ(parallel.last_step().optimizer_stage, "one_bit");
      },
      5'000);
}

TEST(Overlap, TheFirstBucketTravelsBeforeBackwardEnds) {
  on_ranks(2, [&](comm::World& world) {
    TwoStages net;
    DataParallel parallel(*net, world, {.bucket_bytes = 8192, .first_bucket_bytes = 8192});
    OneBitAdam optimizer(parallel, {.freeze_step = 3});
    for (int step = 0; step < 6; ++step) {
      const std::int64_t before = parallel.sent_bytes();
      bool sent = false;
      optimizer.zero_grad();
      const std::function<void()> look = [&] { sent = comes_true([&] { return parallel.sent_bytes() > before; }); };
      net->loss(step, world.rank(), look).backward();
      EXPECT_TRUE(sent) << "step " << step << ", " << (optimizer.frozen() ? "one_bit" : "warm_up");
      optimizer.step();
    }
  });
}

}  // namespace
}  // namespace thinwire::train
