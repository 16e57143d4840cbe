// Save, end every process, resume in new ones: the trajectory must be the uninterrupted one, bit for bit.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/dist/train_bodies.hpp"
#include "tests/dist/train_parts.hpp"
#include "tests/train/models.hpp"

namespace thinwire::tests {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3;
constexpr std::int64_t kFreeze = 20;
constexpr std::int64_t kMore = 50;
const std::set<std::int64_t> kStops{1, kFreeze - 1, kFreeze, kFreeze + 1, kFreeze + 15};

std::string folder_of(const std::string& root, std::int64_t stop) {
  return (fs::path(root) / std::to_string(stop)).string();
}

// TRAIN_FROM: the stop to resume from, -1 to begin; TRAIN_SAVE: not empty to save at every stop; TRAIN_DIR.
// Says "AT <step> <hash of x, m, v, e, s>" 50 steps after every stop.
TEST(RankBody, DISABLED_TrainWithStops) {
  const auto world = init_from_env();
  const std::int64_t from = std::stoll(given("TRAIN_FROM"));
  train::TinyNet net = train::make_tiny_net(from < 0 ? 1 : 99);
  DataParallel parallel(*net, *world, {.bucket_bytes = 8192, .first_bucket_bytes = 8192});
  const auto optimizer = make_optimizer(parallel, "one_bit", kFreeze);
  std::int64_t step = 0, end = *kStops.rbegin() + kMore;
  if (!given("TRAIN_SAVE").empty()) end = *kStops.rbegin();
  if (from >= 0) {
    const auto state = load_checkpoint(folder_of(given("TRAIN_DIR"), from), parallel, *optimizer);
    ASSERT_TRUE(state.has_value());
    ASSERT_EQ(state->step, from);
    step = from;
    end = from + kMore;
  }
  while (step < end) {
    optimizer->zero_grad();
    train::tiny_loss(net, step, world->rank(), 16).backward();
    optimizer->step();
    ++step;
    if (!given("TRAIN_SAVE").empty() && kStops.count(step) != 0)
      save_checkpoint(folder_of(given("TRAIN_DIR"), step), parallel, *optimizer, {.step = step});
    if (kStops.count(step - kMore) != 0)
      std::printf("\nAT %ld %s\n", static_cast<long>(step), state_text(parallel, *optimizer).c_str());
  }
}

TEST(TrainResume, InNewProcessesIsBitExactAroundTheFreeze) {
  const fs::path root = fs::path(testing::TempDir()) / ("thinwire_resume_" + std::to_string(::getpid()));
  Environment environment{{"TRAIN_DIR", root.string()}, {"TRAIN_FROM", "-1"}};
  const auto whole = expect_body_passes(kRanks, "TrainWithStops", environment);
  environment["TRAIN_SAVE"] = "1";
  expect_body_passes(kRanks, "TrainWithStops", environment);
  environment.erase("TRAIN_SAVE");
  std::vector<std::vector<std::string>> resumed(kRanks);
  for (const std::int64_t stop : kStops) {
    environment["TRAIN_FROM"] = std::to_string(stop);
    const auto results = expect_body_passes(kRanks, "TrainWithStops", environment);
    for (int rank = 0; rank < kRanks; ++rank)
      for (const std::string& line : lines_of(results[rank].output, "AT"))
        if (line.rfind(std::to_string(stop + kMore) + " ", 0) == 0) resumed[rank].push_back(line);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(resumed[rank].size(), kStops.size());
    EXPECT_EQ(lines_of(whole[rank].output, "AT"), resumed[rank]) << "rank " << rank;
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace thinwire::tests
