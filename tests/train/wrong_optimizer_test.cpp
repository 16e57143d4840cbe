// A widespread wrong version of sign compression, put before the invariants that ours keeps: sign(g) + e without a
// scale, e = g - (sign + e). On a constant gradient of 0.1 it sends 1.0, 0.1, 1.0, 0.1, ...: 5.5 times too much.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/train/exchange_ranks.hpp"

namespace thinwire::train {
namespace {

// A compressor with memory: takes a gradient, returns what is applied. `held` is what it says it has not sent yet.
struct Compressor {
  std::function<torch::Tensor(const torch::Tensor&)> send;
  std::function<torch::Tensor()> held;
};

Compressor wrong_one() {
  auto residual = std::make_shared<torch::Tensor>();
  return {[residual](const torch::Tensor& g) {
            if (!residual->defined()) *residual = torch::zeros_like(g);
            const torch::Tensor sent = torch::where(g >= 0, torch::ones_like(g), -torch::ones_like(g)) + *residual;
            *residual = g - sent;
            return sent;
          },
          [residual] { return *residual; }};
}

Compressor ours(RankExchanges& exchanges) {
  return {[&](const torch::Tensor& g) { return exchanges.exchange({g})[0].clone(); },
          [&] { return exchanges.set().unsent(0); }};
}

// The invariants, as distances: 0 when they hold.
double lost(const Compressor& compressor, std::int64_t d) {  // | sum y + E - sum x | per step
  torch::Tensor sum = torch::zeros({d});
  for (int step = 0; step < 10; ++step) {
    const torch::Tensor x = noise(static_cast<std::uint64_t>(step), {d}) * 0.1;
    sum += compressor.send(x) - x;
  }
  return (sum + compressor.held()).abs().mean().item<double>() / 10;
}

double overshoot(const Compressor& compressor, std::int64_t d) {  // time average of a constant, relative error
  torch::Tensor sum = torch::zeros({d});
  for (int step = 0; step < 40; ++step) sum += compressor.send(torch::full({d}, 0.1));
  return std::abs(sum.mean().item<double>() / 40 / 0.1 - 1);
}

double scale_error(const Compressor& one, const Compressor& two, std::int64_t d) {  // | C(4 x) - 4 C(x) |
  const torch::Tensor x = noise(1, {d}) * 0.1;
  return (two.send(4 * x) - 4 * one.send(x)).abs().max().item<double>();
}

TEST(WrongOptimizer, SendsWhatTheArticleShows) {
  const Compressor wrong = wrong_one();
  for (const double want : {1.0, 0.1, 1.0, 0.1}) {
    EXPECT_NEAR(wrong.send(torch::full({3}, 0.1))[1].item<double>(), want, 1e-6);
  }
}

TEST(WrongOptimizer, BreaksEveryInvariantThatOursKeeps) {
  const std::int64_t d = 2000;
  EXPECT_NEAR(overshoot(wrong_one(), d), 4.5, 1e-3) << "5.5 times the gradient";
  EXPECT_GT(lost(wrong_one(), d), 0.05);
  EXPECT_GT(scale_error(wrong_one(), wrong_one(), d), 1.0);
  on_ranks(1, [&](comm::World& world) {
    RankExchanges a({d}, world, "one_bit"), b({d}, world, "one_bit"), c({d}, world, "one_bit"),
        e({d}, world, "one_bit");
    EXPECT_LT(overshoot(ours(a), d), 1e-3);
    EXPECT_LT(lost(ours(b), d), 1e-6);
    EXPECT_EQ(scale_error(ours(c), ours(e), d), 0.0);
  });
}

}  // namespace
}  // namespace thinwire::train
