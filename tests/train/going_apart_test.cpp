// One rank does something else than the others and goes on: everyone hears of it, nobody trains on with different
// state. And what a trainer may do to a model that a reducer would not expect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/refusal.hpp"
#include "tests/train/throwing.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

using testing::HasSubstr;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Runs `segment` again in backward, with a backward of its own inside: activation checkpointing.
struct Checkpointed : torch::autograd::Function<Checkpointed> {
  using Segment = std::function<torch::Tensor(torch::Tensor)>;
  static torch::Tensor forward(AutogradContext* context, torch::Tensor x, std::int64_t segment) {
    context->save_for_backward({x});
    context->saved_data["segment"] = segment;
    const at::NoGradGuard no_grad;
    return (*reinterpret_cast<const Segment*>(segment))(x);
  }
  static variable_list backward(AutogradContext* context, variable_list outputs) {
    const torch::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const at::AutoGradMode enable(true);
    const torch::Tensor y = (*reinterpret_cast<const Segment*>(context->saved_data["segment"].toInt()))(x);
    torch::autograd::backward({y}, {outputs[0]});
    return {x.grad(), torch::Tensor()};
  }
};

torch::Tensor noise(std::uint64_t seed, at::IntArrayRef shape) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(shape, generator);
}

struct StackImpl : torch::nn::Module {
  StackImpl() {
    const torch::NoGradGuard no_grad;
    for (const char* name : {"first", "middle", "last"}) {
      layers.push_back(register_module(name, torch::nn::Linear(40, 40)));
      layers.back()->weight.copy_(noise(layers.size(), {40, 40}) * 0.2);
      layers.back()->bias.zero_();
    }
  }
  // `again`: which layer is checkpointed; -1: none.
  torch::Tensor loss(int step, int rank, int again) {
    segment = [this, again](const torch::Tensor& x) { return torch::tanh(layers[again]->forward(x)); };
    torch::Tensor h = noise(static_cast<std::uint64_t>(100 * step + rank), {8, 40});
    for (int i = 0; i < 3; ++i) {
      h = i == again ? Checkpointed::apply(h, reinterpret_cast<std::int64_t>(&segment))
                     : torch::tanh(layers[i]->forward(h));
    }
    return h.square().mean();
  }
  std::vector<torch::nn::Linear> layers;
  Checkpointed::Segment segment;
};
TORCH_MODULE(Stack);

TEST(BackwardInsideOfBackward, IsPartOfTheOuterStep) {
  for (const char* codec : {"fp32", "int4"}) {
    on_ranks(2, [&](comm::World& world) {
      torch::Tensor plain;
      for (const int again : {-1, 1}) {
        Stack net;
        DataParallel parallel(*net, world, {.codec = codec, .bucket_bytes = 8192, .first_bucket_bytes = 8192});
        Sgd optimizer(parallel, {.lr = 0.1});
        for (int step = 0; step < 5; ++step) {
          optimizer.zero_grad();
          net->loss(step, world.rank(), again).backward();
          optimizer.step();
          EXPECT_EQ(parallel.last_step().step, step + 1) << "one exchange for a step";
        }
        if (again < 0) plain = flat_parameters(*net);
        if (again >= 0) {
          EXPECT_TRUE(torch::equal(flat_parameters(*net), plain)) << codec;
        }
      }
    });
  }
}

TEST(BackwardInsideOfBackward, ThatReachesAParameterFirstIsRefused) {
  on_ranks(2, [&](comm::World& world) {
    Stack net;
    DataParallel parallel(*net, world, {.codec = "int4"});
    Sgd optimizer(parallel, {.lr = 0.1});
    EXPECT_THAT(refusal(ErrorCode::kState, [&] { net->loss(0, world.rank(), 2).backward(); }),
                HasSubstr("leaving the last layer out of it"));
    optimizer.step();
    EXPECT_TRUE(parallel.last_step().skipped);
    optimizer.zero_grad();
    net->loss(1, world.rank(), 1).backward();
    optimizer.step();
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

class OnOneRank : public testing::TestWithParam<const char*> {};

TEST_P(OnOneRank, AnExceptionInBackwardThenACollectiveStaysInOrder) {
  on_ranks(2, [&](comm::World& world) {
    Fragile net;
    DataParallel parallel(*net, world, {.codec = GetParam()});
    AdamW optimizer(parallel);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const bool throws = world.rank() == 1 && step == 3;
      try {
        net->loss(step, world.rank(), throws).backward();
        EXPECT_FALSE(throws);
      } catch (const std::exception& error) {
        EXPECT_TRUE(throws) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("planted in backward"));
      }
      const torch::Tensor mean = torch::full({1}, 1.0F + world.rank());
      parallel.all_reduce_mean(mean);
      EXPECT_EQ(mean.item<float>(), 1.5F);
      optimizer.step();
      EXPECT_EQ(parallel.last_step().skipped, step == 3);
    }
  });
}

TEST_P(OnOneRank, AStepThatOneRankDoesNotTakeIsFoundAtTheNextExchange) {
  on_ranks(3, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = GetParam()});
    AdamW optimizer(parallel);
    const auto train = [&](int step, bool take) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      if (take) optimizer.step();
    };
    for (int step = 0; step < 3; ++step) train(step, true);
    train(3, false);  // given up by all: fine
    train(4, true);
    train(5, world.rank() != 1);
    EXPECT_THAT(refusal(ErrorCode::kMismatch, [&] { train(6, true); }), HasSubstr("steps taken before step"));
  });
}

TEST_P(OnOneRank, AForwardThatThrewIsFoundAtTheNextExchange) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = GetParam()});
    AdamW optimizer(parallel);
    std::string said;
    try {
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grad();
        if (world.rank() == 0 || step != 3) tiny_loss(net, step, world.rank()).backward();
        optimizer.step();
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      said = error.what();
    }
    EXPECT_THAT(said, HasSubstr("steps taken before step 4"));
  });
}

TEST_P(OnOneRank, ClearedGradientsAreFoundAtTheNextExchange) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world, {.codec = GetParam()});
    AdamW optimizer(parallel);
    const auto train = [&](int step, bool clear) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      if (clear) optimizer.zero_grad();
      optimizer.step();
    };
    train(0, false);
    const torch::Tensor before = flat_parameters(*net);
    train(1, true);  // on all: no step, as without us
    EXPECT_TRUE(torch::equal(flat_parameters(*net), before));
    train(2, false);
    EXPECT_FALSE(torch::equal(flat_parameters(*net), before));
    train(3, world.rank() == 1);
    refusal(ErrorCode::kMismatch, [&] { train(4, false); });
  });
}
INSTANTIATE_TEST_SUITE_P(Codecs, OnOneRank, testing::Values("fp32", "int4"));

TEST(Trainer, MayCallStepWithoutABackwardEverywhere) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      optimizer.step();
      optimizer.step();
    }
    EXPECT_EQ(parallel.last_step().step, 20);
  });
}

TEST(Trainer, MayNotReplaceAGradientByAnotherShape) {
  for (const bool shorter : {true, false}) {
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world);
      AdamW optimizer(parallel);
      tiny_loss(net, 0, world.rank()).backward();
      for (torch::Tensor& one : net->parameters()) {
        if (one.dim() == 2) one.mutable_grad() = shorter ? one.grad().slice(0, 0, 1) : one.grad().t().contiguous().t();
      }
      EXPECT_THAT(refusal(ErrorCode::kState, [&] { optimizer.step(); }), HasSubstr("between backward and step"));
    });
  }
}

TEST(Trainer, MayNotMoveTheModuleAfterwards) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    net->to(torch::kDouble);
    EXPECT_THAT(refusal(ErrorCode::kState, [&] { optimizer.step(); }), HasSubstr("module.to(...) before DataParallel"));
  });
}

TEST(Trainer, MayThawAModelThatWasFrozenAltogether) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    for (torch::Tensor& one : net->parameters()) one.requires_grad_(false);
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    for (torch::Tensor& one : net->parameters()) one.requires_grad_(true);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      tiny_loss(net, step, world.rank()).backward();
      optimizer.step();
      EXPECT_EQ(parallel.last_step().step, step + 1);
    }
  });
}

TEST(Groups, OfAnotherOptimizerOrAddedLaterAreRefused) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    torch::optim::OptimizerParamGroup foreign(net->parameters());
    foreign.set_options(std::make_unique<torch::optim::AdamWOptions>(1e-3));
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, [&] { AdamW(parallel, {foreign}, {}); }),
                HasSubstr("those of another optimizer"));
    refusal(ErrorCode::kInvalidArgument, [&] { Sgd(parallel, {foreign}, {}); });
    std::vector<torch::Tensor> some = net->parameters();
    const torch::Tensor later = some.back();
    some.pop_back();
    AdamW optimizer(parallel, {torch::optim::OptimizerParamGroup(some)}, {});
    optimizer.add_param_group(torch::optim::OptimizerParamGroup({later}));
    tiny_loss(net, 0, world.rank()).backward();
    EXPECT_THAT(refusal(ErrorCode::kState, [&] { optimizer.step(); }), HasSubstr("an optimizer made with all groups"));
  });
}

TEST(Groups, MayHoldParametersWithoutElements) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    net->register_parameter("empty", torch::zeros({0, 5}));
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel, {torch::optim::OptimizerParamGroup(net->parameters())}, {});
    tiny_loss(net, 0, world.rank()).backward();
    optimizer.step();
    EXPECT_FALSE(parallel.last_step().skipped);
  });
}

TEST(Model, WithSparseGradientsOrExpandedBuffersIsRefusedByName) {
  on_ranks(2, [&](comm::World& world) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(600, 8).sparse(true));
    DataParallel parallel(*table, world);
    EXPECT_THAT(
        refusal(ErrorCode::kInvalidArgument, [&] { table->forward(torch::arange(5)).square().sum().backward(); }),
        HasSubstr("gradient of weight; got a sparse tensor"));
    TinyNet net = make_tiny_net();
    net->register_buffer("mask", torch::ones({1}).expand({4, 4}));
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, [&] { const DataParallel other(*net, world); }),
                HasSubstr("buffer mask; got an expanded tensor"));
  });
}

}  // namespace
}  // namespace thinwire::train
