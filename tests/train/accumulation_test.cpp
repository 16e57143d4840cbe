// From autograd to the exchange: accumulation, both kinds of zero_grad, shared memory, orders of arrival.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

// Parameters after `steps` steps of `body(net, parallel, optimizer, step)`, checked to be equal on all ranks.
using StepBody = std::function<void(TinyNet&, DataParallel&, Sgd&, int step)>;
torch::Tensor train(int ranks, int steps, const DataParallelSettings& settings, const StepBody& body) {
  std::vector<torch::Tensor> results(ranks);
  on_ranks(ranks, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, settings);
    Sgd optimizer(parallel, {.lr = 0.1});
    for (int step = 0; step < steps; ++step) body(net, parallel, optimizer, step);
    results[world.rank()] = flat_parameters(*net);
  });
  for (int rank = 1; rank < ranks; ++rank) EXPECT_TRUE(torch::equal(results[rank], results[0])) << "rank " << rank;
  return results[0];
}

const DataParallelSettings kInt4{.codec = "int4", .bucket_bytes = 8192, .first_bucket_bytes = 8192};

TEST(Accumulation, MicroBatchesWithNoSyncEqualOneBatch) {
  for (const bool to_none : {true, false}) {
    const torch::Tensor whole = train(2, 6, kInt4, [](TinyNet& net, DataParallel& parallel, Sgd& optimizer, int step) {
      optimizer.zero_grad();
      ((tiny_loss(net, 2 * step, parallel.rank()) + tiny_loss(net, 2 * step + 1, parallel.rank())) / 2).backward();
      optimizer.step();
    });
    const torch::Tensor parts = train(2, 6, kInt4, [&](TinyNet& net, DataParallel& parallel, Sgd& optimizer, int step) {
      optimizer.zero_grad(to_none);
      {
        const auto accumulate = parallel.no_sync();
        const std::int64_t before = parallel.sent_bytes();
        (tiny_loss(net, 2 * step, parallel.rank()) / 2).backward();
        EXPECT_EQ(parallel.sent_bytes(), before);
      }
      (tiny_loss(net, 2 * step + 1, parallel.rank()) / 2).backward();
      optimizer.step();
    });
    EXPECT_LT((whole - parts).norm().item<double>(), 2e-3 * whole.norm().item<double>());
  }
}

TEST(Accumulation, BothKindsOfZeroGradGiveTheSameBits) {
  for (const char* codec : {"fp32", "int4"}) {
    torch::Tensor results[2];
    for (const bool to_none : {false, true}) {
      results[to_none] =
          train(3, 6, {.codec = codec}, [&](TinyNet& net, DataParallel& parallel, Sgd& optimizer, int step) {
            optimizer.zero_grad(to_none);
            tiny_loss(net, step, parallel.rank()).backward();
            optimizer.step();
          });
    }
    EXPECT_TRUE(torch::equal(results[0], results[1])) << codec;
  }
}

TEST(Accumulation, CreateGraphGivesTheSameBits) {
  for (const char* codec : {"fp32", "int4"}) {
    torch::Tensor results[2];
    for (const bool create_graph : {false, true}) {
      results[create_graph] =
          train(2, 5, {.codec = codec}, [&](TinyNet& net, DataParallel& parallel, Sgd& optimizer, int step) {
            optimizer.zero_grad();
            tiny_loss(net, step, parallel.rank()).backward({}, /*retain_graph=*/create_graph, create_graph);
            optimizer.step();
          });
    }
    EXPECT_TRUE(torch::equal(results[0], results[1])) << codec;
  }
}

struct OneWeightImpl : torch::nn::Module {
  OneWeightImpl() { weight = register_parameter("weight", torch::ones({40, 40})); }
  torch::Tensor weight;
};
TORCH_MODULE(OneWeight);

// A hook on an intermediate result runs a backward of its own through the same parameter.
TEST(Accumulation, ABackwardInsideABackwardAddsToIt) {
  on_ranks(2, [](comm::World& world) {
    OneWeight net;
    DataParallel parallel(*net, world);
    const double mine = 1.0 + world.rank();
    const torch::Tensor inner = (net->weight * (2 * mine)).sum();
    const torch::Tensor outer = net->weight * (3 * mine);
    outer.register_hook([&](const torch::Tensor& /*gradient*/) { inner.backward(); });
    outer.sum().backward();
    EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({40, 40}, 7.5)));
  });
}

// The mean that an exchange left in .grad must not be exchanged again. Giving the step up, by either zero_grad, is
// fine.
TEST(Accumulation, ASecondExchangeOnTopOfTheFirstIsRefused) {
  for (const bool inside_no_sync : {false, true}) {
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world, kInt4);
      Sgd optimizer(parallel, {.lr = 0.1});
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad(step % 2 == 0);
        tiny_loss(net, step, world.rank()).backward();
        optimizer.step();
      }
      optimizer.zero_grad();
      tiny_loss(net, 3, world.rank()).backward();
      const torch::Tensor before = flat_parameters(*net);
      try {
        std::optional<DataParallel::NoSync> accumulate;
        if (inside_no_sync) accumulate.emplace(parallel.reducer());
        tiny_loss(net, 4, world.rank()).backward();
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kState);
        EXPECT_NE(std::string(error.what()).find("no_sync() around all but the last backward"), std::string::npos);
      }
      optimizer.step();
      EXPECT_TRUE(torch::equal(flat_parameters(*net), before)) << "there is no step to take";
      optimizer.zero_grad();
      tiny_loss(net, 5, world.rank()).backward();
      optimizer.step();
      EXPECT_FALSE(torch::equal(flat_parameters(*net), before));
    });
  }
}

TEST(Accumulation, AutogradGradSendsNothing) {
  on_ranks(2, [](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    const std::int64_t before = parallel.sent_bytes();
    if (world.rank() == 0) torch::autograd::grad({tiny_loss(net, 0, 0)}, net->parameters());
    EXPECT_EQ(parallel.sent_bytes(), before);
    EXPECT_EQ(parallel.reducer().state(), Reducer::State::kIdle);
    parallel.barrier();
  });
}

// Layers hang side by side on one input: a permutation by seed decides in which order backward reaches them, and it
// differs between ranks.
struct FanImpl : torch::nn::Module {
  FanImpl() {
    for (int i = 0; i < 9; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(36 + i, 40)));
      torch::NoGradGuard no_grad;
      layers.back()->weight.copy_(noise(70 + i, layers.back()->weight.sizes(), 0.2));
      layers.back()->bias.copy_(noise(90 + i, layers.back()->bias.sizes(), 0.2));
    }
  }
  torch::Tensor loss(std::uint64_t seed, int step, int rank) {
    std::vector<int> order(layers.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    torch::Tensor sum = torch::zeros({});
    for (const int i : order) {
      const torch::Tensor x = noise(static_cast<std::uint64_t>(1000 * step + 100 * rank + i), {4, 36 + i});
      sum = sum + layers[i]->forward(x).square().mean();
    }
    return sum;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Fan);

TEST(Accumulation, TheOrderOfArrivalChangesNoBit) {
  for (const char* codec : {"fp32", "int4"}) {
    std::vector<torch::Tensor> results;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      std::vector<torch::Tensor> of_rank(3);
      on_ranks(3, [&](comm::World& world) {
        Fan net;
        DataParallel parallel(*net, world, {.codec = codec, .bucket_bytes = 8192, .first_bucket_bytes = 8192});
        Sgd optimizer(parallel, {.lr = 0.05});
        for (int step = 0; step < 5; ++step) {
          optimizer.zero_grad();
          net->loss(100 * seed + 10 * step + world.rank() * (seed > 0), step, world.rank()).backward();
          optimizer.step();
        }
        of_rank[world.rank()] = flat_parameters(*net);
      });
      for (const torch::Tensor& one : of_rank) EXPECT_TRUE(torch::equal(one, of_rank[0])) << codec << ", seed " << seed;
      results.push_back(of_rank[0]);
    }
    for (const torch::Tensor& one : results) EXPECT_TRUE(torch::equal(one, results[0])) << codec;
  }
}

// Autograd hands one tensor to several accumulators: both summands of `a + b` and views of it. Whoever writes into one
// gradient must not change the other.
struct SharingImpl : torch::nn::Module {
  SharingImpl() {
    position = register_parameter("position", noise(1, {32, 48}));
    offset = register_parameter("offset", noise(2, {1536}));
    flat = register_parameter("flat", noise(3, {1536}));
    weight = register_parameter("weight", noise(4, {48, 48}, 0.1));
  }
  torch::Tensor loss(int step, int rank) {
    const torch::Tensor x = noise(static_cast<std::uint64_t>(100 * step + rank), {32, 48});
    const torch::Tensor h = x + position + offset.view({32, 48}) + flat.view({32, 48});
    return (h + h.matmul(weight)).square().mean();
  }
  torch::Tensor position, offset, flat, weight;
};
TORCH_MODULE(Sharing);

TEST(Accumulation, GradientsThatShareMemoryStayApart) {
  for (const bool clip : {false, true}) {
    Sharing reference;
    torch::optim::SGD oracle(reference->parameters(), torch::optim::SGDOptions(0.5));
    for (int step = 0; step < 5; ++step) {
      oracle.zero_grad();
      ((reference->loss(step, 0) + reference->loss(step, 1)) / 2).backward();
      if (clip) torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.05);
      oracle.step();
    }
    on_ranks(2, [&](comm::World& world) {
      Sharing net;
      DataParallel parallel(*net, world, {.max_grad_norm = clip ? 0.05 : 0.0});
      Sgd optimizer(parallel, {.lr = 0.5});
      for (int step = 0; step < 5; ++step) {
        optimizer.zero_grad();
        net->loss(step, world.rank()).backward();
        optimizer.step();
      }
      EXPECT_LT((flat_parameters(*net) - flat_parameters(*reference)).abs().max().item<double>(), 1e-5);
    });
  }
}

// The same, compressed: `flat` and `offset` have equal gradients, so equal histories.
TEST(Accumulation, GradientsThatShareMemoryStayApartWhenCompressed) {
  on_ranks(2, [&](comm::World& world) {
    Sharing net;
    const torch::Tensor apart = (net->flat - net->offset).detach().clone();
    DataParallel parallel(*net, world, {.codec = "int4"});
    Sgd optimizer(parallel, {.lr = 0.5});
    for (int step = 0; step < 6; ++step) {
      optimizer.zero_grad();
      net->loss(step, world.rank()).backward();
      EXPECT_TRUE(torch::equal(net->flat.grad(), net->offset.grad())) << step;
      // In one place the second would be encoded from the first one's mean whenever the first came through before.
      std::set<const void*> places;
      for (const torch::Tensor& one : {net->position, net->offset, net->flat}) places.insert(one.grad().data_ptr());
      EXPECT_EQ(places.size(), 3U) << step;
      optimizer.step();
    }
    EXPECT_LT((net->flat - net->offset - apart).abs().max().item<double>(), 1e-5);
  });
}

}  // namespace
}  // namespace thinwire::train
