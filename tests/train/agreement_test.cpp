// What must be equal on every rank, and what each rank is told when it is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs `body` on 3 ranks. Every rank must end with the same kMismatch; returns its text.
std::string mismatch(const std::function<void(comm::World&)>& body) {
  std::vector<std::string> texts(3);
  on_ranks(3, [&](comm::World& world) {
    try {
      body(world);
      texts[world.rank()] = "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
      texts[world.rank()] = error.what();
    }
    EXPECT_EQ(world.hop1().counters().broadcast.load(), 0) << "something was sent before the check";
  });
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_EQ(texts[2], texts[0]);
  return texts[0];
}

void build(comm::World& world, const std::vector<Shape>& shapes, const DataParallelSettings& settings = {}) {
  Vectors net(shapes);
  const DataParallel parallel(*net, world, settings);
}

TEST(Agreement, AShapeThatDiffersIsNamedWithEachRanksValue) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                build(world, {{50, 50}, {world.rank() == 1 ? 61 : 60, 40}});
              }),
              AllOf(HasSubstr("parameter p1"), HasSubstr("[60, 40]"), HasSubstr("[61, 40]"), HasSubstr("rank 1:")));
}

TEST(Agreement, AMissingParameterIsNamed) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                build(world, world.rank() == 2 ? std::vector<Shape>{{50, 50}} : std::vector<Shape>{{50, 50}, {60, 40}});
              }),
              AllOf(HasSubstr("parameter p1"), HasSubstr("rank 2: nothing")));
}

TEST(Agreement, AnExtraParameterOnARankInTheMiddleIsNamed) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                build(world, world.rank() == 1 ? std::vector<Shape>{{50, 50}, {60, 40}} : std::vector<Shape>{{50, 50}});
              }),
              AllOf(HasSubstr("parameter p1 differs"), HasSubstr("rank 0: nothing"), HasSubstr("[60, 40]")));
}

TEST(Agreement, AParametersNameIsCompared) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                torch::nn::Module net;
                net.register_parameter(world.rank() == 0 ? "weight" : "wait", torch::zeros({40, 40}));
                const DataParallel parallel(net, world);
              }),
              AllOf(HasSubstr("parameter weight"), HasSubstr("parameter wait")));
}

TEST(Agreement, ABuffersDtypeIsCompared) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                torch::nn::Module net;
                net.register_parameter("weight", torch::zeros({40, 40}));
                net.register_buffer("mask", torch::zeros({4}, world.rank() == 2 ? torch::kDouble : torch::kFloat));
                const DataParallel parallel(net, world);
              }),
              AllOf(HasSubstr("buffer mask"), HasSubstr("double"), HasSubstr("float")));
}

// A rank that refuses its model says so to the others, which would wait for it otherwise.
TEST(Agreement, ADtypeThatOneRankCannotTrainIsNamedEverywhere) {
  EXPECT_THAT(mismatch([](comm::World& world) {
                Vectors net(std::vector<Shape>{{50, 50}});
                if (world.rank() == 1) net->to(torch::kDouble);
                const DataParallel parallel(*net, world);
              }),
              AllOf(HasSubstr("rank 1:"), HasSubstr("p0"), HasSubstr("Double")));
}

TEST(Agreement, AWrongDtypeOnEveryRankIsAnErrorOfTheCaller) {
  on_ranks(2, [](comm::World& world) {
    Vectors net(std::vector<Shape>{{50, 50}});
    net->to(torch::kDouble);
    try {
      const DataParallel parallel(*net, world);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("p0"));
    }
  });
}

TEST(Agreement, SettingsAreCompared) {
  const auto with = [](const std::function<void(DataParallelSettings&)>& change) {
    return mismatch([&](comm::World& world) {
      DataParallelSettings settings;
      if (world.rank() == 2) change(settings);
      build(world, {{50, 50}}, settings);
    });
  };
  EXPECT_THAT(with([](auto& s) { s.bucket_bytes = 1 << 20; }), AllOf(HasSubstr("bucket_bytes"), HasSubstr("1048576")));
  EXPECT_THAT(with([](auto& s) { s.first_bucket_bytes = 8192; }), HasSubstr("first_bucket_bytes"));
  EXPECT_THAT(with([](auto& s) { s.codec = "int4"; }), AllOf(HasSubstr("codec"), HasSubstr("int4"), HasSubstr("fp32")));
  EXPECT_THAT(with([](auto& s) { s.max_grad_norm = 1; }), HasSubstr("max_grad_norm"));
  EXPECT_THAT(with([](auto& s) { s.clip_mode = ClipMode::kPredicted; }), HasSubstr("clip_mode"));
  EXPECT_THAT(with([](auto& s) { s.broadcast_buffers = false; }), HasSubstr("broadcast_buffers"));
  EXPECT_THAT(with([](auto& s) { s.parity_every = 5; }), HasSubstr("parity_every"));
  EXPECT_THAT(with([](auto& s) { s.dense_parameters = {"p0"}; }), AllOf(HasSubstr("p0"), HasSubstr("dense")));
  EXPECT_THAT(with([](auto& s) { s.embedding_parameters = {"p0"}; }), AllOf(HasSubstr("p0"), HasSubstr("embedding")));
}

// As above, with an optimizer on top of ranks that agree so far.
std::string optimizer_mismatch(const std::function<void(DataParallel&, const Vectors&, bool odd)>& make) {
  std::vector<std::string> texts(3);
  on_ranks(3, [&](comm::World& world) {
    Vectors net(std::vector<Shape>{{50, 50}, {60, 40}, {10}});
    DataParallel parallel(*net, world);
    try {
      make(parallel, net, world.rank() == 1);
      texts[world.rank()] = "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
      texts[world.rank()] = error.what();
    }
    EXPECT_EQ(world.hop1().counters().all_to_all.load(), 0);
  });
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_EQ(texts[2], texts[0]);
  return texts[0];
}

TEST(Agreement, OptimizerGroupsAreCompared) {
  EXPECT_THAT(optimizer_mismatch([](DataParallel& parallel, const Vectors& net, bool odd) {
                std::vector<torch::optim::OptimizerParamGroup> groups;
                groups.emplace_back(std::vector<torch::Tensor>{net->list[0], net->list[odd ? 1 : 2]});
                groups.emplace_back(std::vector<torch::Tensor>{net->list[odd ? 2 : 1]});
                const AdamW optimizer(parallel, groups, {});
              }),
              AllOf(HasSubstr("optimizer group of p1"), HasSubstr("rank 1:")));
}

TEST(Agreement, SettingsOfOptimizersAreCompared) {
  EXPECT_THAT(optimizer_mismatch([](DataParallel& parallel, const Vectors&, bool odd) {
                const Sgd optimizer(parallel, {.lr = odd ? 0.25 : 0.5});
              }),
              AllOf(HasSubstr("lr"), HasSubstr("0.25"), HasSubstr("0.5")));
  EXPECT_THAT(optimizer_mismatch([](DataParallel& parallel, const Vectors&, bool odd) {
                const AdamW optimizer(parallel, {.beta1 = odd ? 0.8 : 0.9});
              }),
              AllOf(HasSubstr("beta1"), HasSubstr("0.8")));
  const auto with = [](const std::function<void(OneBitAdamSettings&)>& change) {
    return optimizer_mismatch([&](DataParallel& parallel, const Vectors&, bool odd) {
      OneBitAdamSettings settings;
      if (odd) change(settings);
      const OneBitAdam optimizer(parallel, settings);
    });
  };
  EXPECT_THAT(with([](auto& s) { s.warmup_codec = "int8"; }), AllOf(HasSubstr("warmup_codec"), HasSubstr("int8")));
  EXPECT_THAT(with([](auto& s) { s.codec = "one_bit:scale=mean_abs"; }), HasSubstr("mean_abs"));
  EXPECT_THAT(with([](auto& s) { s.freeze_step = 7; }), HasSubstr("freeze_step"));
  EXPECT_THAT(with([](auto& s) { s.total_steps = 100; }), HasSubstr("total_steps"));
  EXPECT_THAT(with([](auto& s) { s.v_floor = 0.5; }), HasSubstr("v_floor"));
}

// Trains on `ranks`, flips one bit of p1 on rank 1, and returns what the next parity check says on each rank.
std::vector<std::string> parity_errors(int ranks) {
  std::vector<std::string> texts(ranks);
  on_ranks(ranks, [&](comm::World& world) {
    const std::vector<Shape> shapes{{50, 50}, {60, 40}, {10}};
    Vectors net(shapes);
    DataParallel parallel(*net, world, {.parity_every = 2});
    AdamW optimizer(parallel);
    try {
      for (int step = 1; step <= 4; ++step) {
        if (step == 3 && world.rank() == 1) {
          auto* bits = reinterpret_cast<std::uint32_t*>(net->list[1].mutable_data_ptr<float>());
          bits[777] ^= 1U;
        }
        optimizer.zero_grad();
        loss_with(net, random_gradients(shapes, step, world.rank())).backward();
        optimizer.step();
      }
      texts[world.rank()] = "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      texts[world.rank()] = error.what();
    }
  });
  return texts;
}

TEST(Parity, NamesTheTensorTheStepAndTheOddRank) {
  for (const std::string& text : parity_errors(3)) {
    EXPECT_THAT(text, AllOf(HasSubstr("x of p1"), HasSubstr("step 4"), HasSubstr("on rank 1")));
  }
}

TEST(Parity, WithTwoRanksThereIsNoVerdict) {
  for (const std::string& text : parity_errors(2)) {
    EXPECT_THAT(text, AllOf(HasSubstr("x of p1"), HasSubstr("no majority"), testing::Not(HasSubstr("on rank 1"))));
  }
}

TEST(Agreement, RankZerosParametersWin) {
  std::vector<torch::Tensor> results(3);
  on_ranks(3, [&](comm::World& world) {
    TinyNet net = make_tiny_net(world.rank() + 1);
    const DataParallel parallel(*net, world);
    results[world.rank()] = flat_parameters(*net);
  });
  TinyNet first = make_tiny_net(1);
  for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, flat_parameters(*first)));
}

TEST(Agreement, SettingsOutOfRangeAreNamed) {
  on_ranks(1, [](comm::World& world) {
    const auto text = [&](const DataParallelSettings& settings) -> std::string {
      try {
        build(world, {{50, 50}}, settings);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        return error.what();
      }
      return "no error";
    };
    EXPECT_THAT(text({.bucket_bytes = 26 << 20}), HasSubstr("bucket_bytes"));
    EXPECT_THAT(text({.first_bucket_bytes = 100}), HasSubstr("first_bucket_bytes"));
    EXPECT_THAT(text({.max_grad_norm = std::nan("")}), HasSubstr("max_grad_norm"));
    EXPECT_THAT(text({.parity_every = -1}), HasSubstr("parity_every"));
    EXPECT_THAT(text({.codec = "int5"}), HasSubstr("int5"));
  });
}

}  // namespace
}  // namespace thinwire::train
