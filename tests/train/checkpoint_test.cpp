// Save, forget everything, resume: the trajectory must be the uninterrupted one, bit for bit.
#include "thinwire/train/checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/train/models.hpp"
#include "tests/train/ranks.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/ddp/reducer.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire::train {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3;
constexpr std::int64_t kFreeze = 20;
constexpr std::int64_t kMore = 50;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("thinwire_checkpoint_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  fs::path directory_;
};

// Everything that the next step depends on, as text that a test can compare.
std::string state_of(DataParallel& parallel, const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream bytes;
  archive.save_to(bytes);
  std::string state = bytes.str();
  const auto add = [&](const void* data, std::size_t size) { state.append(static_cast<const char*>(data), size); };
  for (const auto& parameter : parallel.module().parameters()) add(parameter.data_ptr(), parameter.nbytes());
  for (const auto& gradient : parallel.reducer().exchanges().gradients()) {
    if (gradient.worker) add(gradient.worker->committed().data(), gradient.worker->committed().size_bytes());
  }
  for (const auto* one : parallel.reducer().exchanges().server_residuals()) {
    add(one->residual->committed().data(), one->residual->committed().size_bytes());
  }
  return state;
}

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(DataParallel&)>;

struct Trip {
  DataParallelSettings settings = {.bucket_bytes = 16384, .first_bucket_bytes = 8192};
  MakeOptimizer make;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string save_to = {};
  std::string resume_from = {};
};

std::vector<std::string> train(const Trip& run) {
  std::vector<std::string> states(kRanks);
  on_ranks(kRanks, [&](comm::World& world) {
    TinyNet net = make_tiny_net(run.resume_from.empty() ? 1 : 99);
    DataParallel parallel(*net, world, run.settings);
    const auto optimizer = run.make(parallel);
    std::int64_t step = run.begin;
    if (!run.resume_from.empty()) {
      const auto state = load_checkpoint(run.resume_from, parallel, *optimizer);
      ASSERT_TRUE(state.has_value());
      EXPECT_EQ(state->step, run.begin);
      EXPECT_EQ(state->extra, "position 7");
    }
    for (; step < run.end; ++step) {
      optimizer->zero_grad();
      tiny_loss(net, step, world.rank(), 16).backward();
      optimizer->step();
    }
    if (!run.save_to.empty()) {
      save_checkpoint(run.save_to, parallel, *optimizer, {.step = step, .extra = "position 7"});
    }
    states[world.rank()] = state_of(parallel, *optimizer);
  });
  return states;
}

MakeOptimizer one_bit() {
  return [](DataParallel& parallel) {
    return std::make_unique<OneBitAdam>(parallel, OneBitAdamSettings{.lr = 3e-3, .beta2 = 0.9, .freeze_step = kFreeze});
  };
}

void expect_resumes_exactly(Trip run, std::int64_t stop, const fs::path& directory) {
  run.end = stop + kMore;
  const std::vector<std::string> whole = train(run);
  Trip first = run;
  first.end = stop;
  first.save_to = (directory / std::to_string(stop)).string();
  train(first);
  Trip second = run;
  second.begin = stop;
  second.resume_from = first.save_to;
  const std::vector<std::string> resumed = train(second);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(whole[rank] == resumed[rank]) << "stopped after " << stop << ", rank " << rank;
  }
}

TEST_F(Checkpoint, OneBitAdamResumesBitExactlyAroundTheFreeze) {
  for (const std::int64_t stop : {std::int64_t{1}, kFreeze - 1, kFreeze, kFreeze + 1, kFreeze + 15}) {
    expect_resumes_exactly({.make = one_bit()}, stop, directory_);
  }
}

TEST_F(Checkpoint, OneBitAdamWithPredictedClippingResumesBitExactly) {
  Trip run{.make = one_bit()};
  run.settings.max_grad_norm = 0.5;
  run.settings.clip_mode = ClipMode::kPredicted;
  expect_resumes_exactly(run, kFreeze + 5, directory_);
}

TEST_F(Checkpoint, AdamWAndSgdResumeBitExactly) {
  Trip adamw{.make = [](DataParallel& p) { return std::make_unique<AdamW>(p, AdamWSettings{.lr = 1e-2}); }};
  adamw.settings.codec = "int4";
  expect_resumes_exactly(adamw, 7, directory_ / "adamw");
  Trip sgd{.make = [](DataParallel& p) { return std::make_unique<Sgd>(p, SgdSettings{.lr = 1e-2}); }};
  sgd.settings.codec = "int8";
  expect_resumes_exactly(sgd, 7, directory_ / "sgd");
}

TEST_F(Checkpoint, NothingThereIsNothingLoaded) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    EXPECT_FALSE(load_checkpoint((directory_ / "empty").string(), parallel, optimizer).has_value());
  });
}

TEST_F(Checkpoint, KeepsTheNewestSets) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    for (std::int64_t step = 1; step <= 4; ++step) {
      save_checkpoint(directory_.string(), parallel, optimizer, {.step = step}, 2);
    }
    parallel.barrier();
  });
  EXPECT_FALSE(fs::exists(directory_ / "step-0000000002"));
  EXPECT_TRUE(fs::exists(directory_ / "step-0000000003" / "rank-1.twckpt"));
  EXPECT_TRUE(fs::exists(directory_ / "step-0000000004" / "rank-0.twckpt"));
}

// Saves on two ranks, damages rank 1's part, and returns what loading says on each rank.
std::vector<std::string> load_after(const fs::path& directory, const std::function<void(const fs::path&)>& damage,
                                    std::int64_t width = 70) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    save_checkpoint(directory.string(), parallel, optimizer, {.step = 5});
  });
  std::string newest;
  std::ifstream(directory / "latest") >> newest;
  damage(directory / newest / "rank-1.twckpt");
  std::vector<std::string> messages(2);
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net(3, width);
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    const torch::Tensor before = flat_parameters(*net);
    try {
      load_checkpoint(directory.string(), parallel, optimizer);
    } catch (const Error& error) {
      messages[world.rank()] = error.what();
    }
    EXPECT_TRUE(torch::equal(before, flat_parameters(*net))) << "a failed load changed parameters";
  });
  EXPECT_EQ(messages[0], messages[1]);
  return messages;
}

TEST_F(Checkpoint, TruncatedForeignAndChangedFilesAreRefusedOnEveryRank) {
  const auto truncated =
      load_after(directory_, [](const fs::path& part) { fs::resize_file(part, fs::file_size(part) / 2); });
  EXPECT_NE(truncated[0].find("cut short"), std::string::npos) << truncated[0];
  EXPECT_EQ(truncated[0].rfind("rank 1:", 0), 0U) << truncated[0];
  const auto longer = load_after(
      directory_, [](const fs::path& part) { std::ofstream(part, std::ios::binary | std::ios::app) << 'x'; });
  EXPECT_NE(longer[0].find("added to the file"), std::string::npos) << longer[0];
  const auto foreign =
      load_after(directory_, [](const fs::path& part) { std::ofstream(part) << "PK something else entirely"; });
  EXPECT_NE(foreign[0].find("no checkpoint of ours"), std::string::npos) << foreign[0];
  const auto changed = load_after(directory_, [](const fs::path& part) {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(part) / 2));
    file.put('\x5a');
    file.put('\xa5');
  });
  EXPECT_NE(changed[0].find("checksum"), std::string::npos) << changed[0];
}

TEST_F(Checkpoint, AnotherModelIsNamed) {
  const auto message = load_after(
      directory_, [](const fs::path&) {}, 71)[0];
  EXPECT_NE(message.find("parameter table.weight [40, 70]"), std::string::npos) << message;
}

TEST_F(Checkpoint, AFailedSaveLeavesTheOneBeforeAndSaysWhoFailed) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    save_checkpoint(directory_.string(), parallel, optimizer, {.step = 5});
    parallel.barrier();
    // A folder where rank 1's file should go: writing fails for root as well.
    if (world.rank() == 1) fs::create_directories(directory_ / "step-0000000006" / "rank-1.twckpt" / "full");
    parallel.barrier();
    try {
      save_checkpoint(directory_.string(), parallel, optimizer, {.step = 6});
      ADD_FAILURE() << "saved over a folder";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_EQ(std::string(error.what()).rfind("rank 1:", 0), 0U) << error.what();
    }
    EXPECT_EQ(load_checkpoint(directory_.string(), parallel, optimizer)->step, 5);
  });
}

// The set that `latest` names stays whole while the same step is saved again.
TEST_F(Checkpoint, SavingTheSameStepAgainNeverTouchesTheLiveSet) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    const std::string directory = directory_.string();
    save_checkpoint(directory, parallel, optimizer, {.step = 5, .extra = "first"});
    const torch::Tensor saved = flat_parameters(*net);
    tiny_loss(net, 0, world.rank()).backward();
    optimizer.step();
    const fs::path obstacle = directory_ / "step-0000000005.again" / "rank-1.twckpt" / "full";
    if (world.rank() == 1) fs::create_directories(obstacle);
    parallel.barrier();
    EXPECT_THROW(save_checkpoint(directory, parallel, optimizer, {.step = 5, .extra = "second"}), Error);
    EXPECT_EQ(load_checkpoint(directory, parallel, optimizer)->extra, "first");
    EXPECT_TRUE(torch::equal(flat_parameters(*net), saved));
    parallel.barrier();
    if (world.rank() == 1) fs::remove_all(obstacle.parent_path());
    parallel.barrier();
    for (const char* extra : {"third", "fourth", "fifth"}) {
      save_checkpoint(directory, parallel, optimizer, {.step = 5, .extra = extra});
      parallel.barrier();
      EXPECT_EQ(load_checkpoint(directory, parallel, optimizer)->extra, extra);
    }
  });
}

TEST_F(Checkpoint, PartsOfDifferentSavesAreRefused) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    const fs::path part = directory_ / "step-0000000005" / "rank-1.twckpt";
    const fs::path other = directory_ / "step-0000000005.again" / "rank-1.twckpt";
    for (int save = 0; save < 2; ++save) save_checkpoint(directory_.string(), parallel, optimizer, {.step = 5});
    parallel.barrier();
    if (world.rank() == 1) fs::copy_file(part, other, fs::copy_options::overwrite_existing);
    parallel.barrier();
    try {
      load_checkpoint(directory_.string(), parallel, optimizer);
      ADD_FAILURE() << "loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      EXPECT_NE(std::string(error.what()).find("save that the part in"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("the checkpoint before it"), std::string::npos) << error.what();
    }
    parallel.barrier();
    save_checkpoint(directory_.string(), parallel, optimizer, {.step = 6});  // the refusal left the reducer usable
    EXPECT_EQ(load_checkpoint(directory_.string(), parallel, optimizer)->step, 6);
  });
}

TEST_F(Checkpoint, WhatAKilledSaveLeftIsTidiedUp) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    const fs::path left = directory_ / "step-0000000001" / "rank-0.twckpt.tmp.4711.0";
    const fs::path alive = directory_ / "step-0000000003" / "rank-0.twckpt.tmp.4712.0";
    if (world.rank() == 0) {
      for (const fs::path& file : {left, alive}) {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << "half a part";
      }
      fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
    }
    parallel.barrier();
    for (std::int64_t step = 2; step <= 4; ++step)
      save_checkpoint(directory_.string(), parallel, optimizer, {.step = step}, 2);
    parallel.barrier();
    EXPECT_FALSE(fs::exists(directory_ / "step-0000000001"));
    EXPECT_TRUE(fs::exists(directory_ / "step-0000000003"));
    EXPECT_TRUE(fs::exists(alive)) << "what another run is writing was removed";
  });
}

// Refused before anything is changed.
TEST_F(Checkpoint, AnotherOptimizerOrCodecIsNamed) {
  const auto save_with = [&](const MakeOptimizer& make) {
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net();
      DataParallel parallel(*net, world);
      save_checkpoint(directory_.string(), parallel, *make(parallel), {.step = 5});
    });
  };
  const auto refusal_of = [&](const MakeOptimizer& make, const DataParallelSettings& settings) {
    std::string message;
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net(7);
      DataParallel parallel(*net, world, settings);
      const auto optimizer = make(parallel);
      const torch::Tensor before = flat_parameters(*net);
      try {
        load_checkpoint(directory_.string(), parallel, *optimizer);
        ADD_FAILURE() << "loaded";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
        if (world.rank() == 0) message = error.what();
      }
      EXPECT_TRUE(torch::equal(before, flat_parameters(*net)));
    });
    return message;
  };
  const auto with = [](const std::string& warmup, const std::string& codec) -> MakeOptimizer {
    return [=](DataParallel& parallel) {
      return std::make_unique<OneBitAdam>(parallel, OneBitAdamSettings{.warmup_codec = warmup, .codec = codec});
    };
  };
  save_with(with("int4", "one_bit"));
  EXPECT_NE(refusal_of(with("fp32", "one_bit"), {}).find("warmup_codec"), std::string::npos);
  EXPECT_NE(refusal_of(with("int4", "one_bit:scale=mean_abs"), {}).find("codec in the archive"), std::string::npos);
  EXPECT_NE(refusal_of([](DataParallel& p) { return std::make_unique<AdamW>(p); }, {}).find("OneBitAdam"),
            std::string::npos);
  EXPECT_NE(refusal_of(with("int4", "one_bit"), {.dense_parameters = {"first.weight"}}).find("first.weight"),
            std::string::npos);
}

// Groups decide the cut, and with it what a residual belongs to.
TEST_F(Checkpoint, OtherParameterGroupsAreNamedBeforeAnythingIsChanged) {
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  const auto split_after = [](std::size_t count) -> MakeOptimizer {
    return [count](DataParallel& parallel) {
      const std::vector<torch::Tensor> all = parallel.module().parameters();
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(count);
      Groups groups;
      groups.emplace_back(std::vector<torch::Tensor>(all.begin(), middle));
      if (middle != all.end()) groups.emplace_back(std::vector<torch::Tensor>(middle, all.end()));
      return std::make_unique<AdamW>(parallel, groups, AdamWSettings{});
    };
  };
  const DataParallelSettings settings{.codec = "int4", .bucket_bytes = 16384, .first_bucket_bytes = 8192};
  const auto on_two = [&](std::uint64_t seed, const MakeOptimizer& make, const auto& body) {
    on_ranks(2, [&](comm::World& world) {
      TinyNet net = make_tiny_net(seed);
      DataParallel parallel(*net, world, settings);
      const auto optimizer = make(parallel);
      for (int step = 0; step < 2; ++step) {
        optimizer->zero_grad();
        tiny_loss(net, step, world.rank()).backward();
        optimizer->step();
      }
      body(parallel, *optimizer);
    });
  };
  on_two(1, split_after(3), [&](DataParallel& parallel, torch::optim::Optimizer& optimizer) {
    save_checkpoint(directory_.string(), parallel, optimizer, {.step = 2});
  });
  std::vector<std::string> messages(2);
  const auto expect_refused = [&](std::size_t count, const std::string& named) {
    on_two(7, split_after(count), [&](DataParallel& parallel, torch::optim::Optimizer& optimizer) {
      const std::string before = state_of(parallel, optimizer);
      try {
        load_checkpoint(directory_.string(), parallel, optimizer);
        ADD_FAILURE() << "loaded";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
        messages[parallel.rank()] = error.what();
      }
      EXPECT_TRUE(before == state_of(parallel, optimizer)) << "a refused load changed something";
    });
    EXPECT_NE(messages[0].find(named), std::string::npos) << messages[0];
    EXPECT_EQ(messages[0], messages[1]);
  };
  expect_refused(make_tiny_net()->parameters().size(), "optimizer groups 2");
  expect_refused(4, "got optimizer group of norm.weight 1, want optimizer group of norm.weight 0");
}

// A resume from the beginning would throw away what lies there.
TEST_F(Checkpoint, AnEmptyLatestIsRefusedAndSaysWhatToWriteIntoIt) {
  std::vector<std::string> messages(2);
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    save_checkpoint(directory_.string(), parallel, optimizer, {.step = 5});
    for (const char* content : {"", "\n", " \r\n"}) {
      parallel.barrier();
      if (world.rank() == 0) std::ofstream(directory_ / "latest") << content;
      parallel.barrier();
      try {
        load_checkpoint(directory_.string(), parallel, optimizer);
        ADD_FAILURE() << "loaded";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
        messages[world.rank()] = error.what();
      }
    }
    save_checkpoint(directory_.string(), parallel, optimizer, {.step = 6});
    EXPECT_EQ(load_checkpoint(directory_.string(), parallel, optimizer)->step, 6);
  });
  EXPECT_NE(messages[0].find("latest; got an empty file"), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find("step-0000000005"), std::string::npos) << messages[0];
  EXPECT_EQ(messages[0], messages[1]);
}

// Only rank 0 reads `latest` while it saves; the others must hear that it could not.
TEST_F(Checkpoint, ASaveThatCannotReadLatestEndsOnEveryRankAlike) {
  std::vector<std::string> messages(2);
  fs::create_directories(directory_ / "latest");
  on_ranks(
      2,
      [&](comm::World& world) {
        TinyNet net = make_tiny_net();
        DataParallel parallel(*net, world);
        AdamW optimizer(parallel);
        try {
          save_checkpoint(directory_.string(), parallel, optimizer, {.step = 1});
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
          messages[world.rank()] = error.what();
        }
        parallel.barrier();
        if (world.rank() == 0) fs::remove(directory_ / "latest");
        parallel.barrier();
        save_checkpoint(directory_.string(), parallel, optimizer, {.step = 2});  // the refusal left all ranks usable
      },
      5'000);
  EXPECT_EQ(messages[0].rfind("rank 0:", 0), 0U) << messages[0];
  EXPECT_EQ(messages[0], messages[1]);
}

TEST_F(Checkpoint, RefusesToSaveAnOpenStep) {
  on_ranks(2, [&](comm::World& world) {
    TinyNet net = make_tiny_net();
    DataParallel parallel(*net, world);
    AdamW optimizer(parallel);
    tiny_loss(net, 0, world.rank()).backward();
    EXPECT_THROW(save_checkpoint(directory_.string(), parallel, optimizer, {.step = 1}), Error);
    optimizer.step();
  });
}

}  // namespace
}  // namespace thinwire::train
