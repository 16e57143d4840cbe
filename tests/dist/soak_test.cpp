// Ten thousand steps on four ranks: memory stays where it is and so do the bits that ranks share.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "tests/dist/train_bodies.hpp"
#include "tests/dist/train_parts.hpp"
#include "tests/train/models.hpp"

namespace thinwire::tests {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 10'000;
constexpr std::int64_t kSettled = 1'000;  // rings are full, allocators have what they need
constexpr std::int64_t kBytesPerStep = 100;

std::int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  ADD_FAILURE() << "no VmRSS in /proc/self/status";
  return 0;
}

TEST(RankBody, DISABLED_Soak) {
  const auto world = init_from_env();
  train::TinyNet net = train::make_tiny_net();
  DataParallel parallel(*net, *world, {.bucket_bytes = 16384, .first_bucket_bytes = 8192, .parity_every = 500});
  const auto optimizer = make_optimizer(parallel, "one_bit", 200);
  std::int64_t settled = 0;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    optimizer->zero_grad();
    train::tiny_loss(net, step, world->rank()).backward();
    optimizer->step();
    if (step % 1'000 != 0) continue;
    const std::string state = state_text(parallel, *optimizer, "xmv");  // takes memory of its own the first time
    const std::int64_t resident = resident_bytes();
    if (step == kSettled) settled = resident;
    std::printf("\nSTATE %s\nFIGURES rank %d, step %ld: %ld kB resident\n", state.c_str(), world->rank(),
                static_cast<long>(step), static_cast<long>(resident / 1024));
    std::fflush(stdout);
  }
  EXPECT_EQ(parallel.last_step().optimizer_stage, "one_bit");
  EXPECT_LE(resident_bytes() - settled, kBytesPerStep * (kSteps - kSettled));
}

TEST(Soak, MemoryStaysAndRanksAgree) {
  const auto results = expect_body_passes(kRanks, "Soak", {}, 1'700'000);
  const auto states = lines_of(results[0].output, "STATE");
  EXPECT_EQ(states.size(), static_cast<std::size_t>(kSteps / 1'000));
  for (const RankResult& result : results) {
    EXPECT_EQ(lines_of(result.output, "STATE"), states);
    for (const std::string& line : lines_of(result.output, "FIGURES")) std::printf("%s\n", line.c_str());
  }
}

}  // namespace
}  // namespace thinwire::tests
