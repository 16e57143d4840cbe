// The watchdog's connection to the store is its own: what the trainer waits for there does not silence the heartbeat.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/dist/process_ranks.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/bulletin.hpp"
#include "thinwire/comm/c10d_group.hpp"
#include "thinwire/comm/failure.hpp"
#include "thinwire/comm/store.hpp"
#include "thinwire/comm/watchdog.hpp"

namespace thinwire::comm {
namespace {

constexpr std::int64_t kReply_ms = 20'000;
constexpr std::int64_t kTimeout_ms = 30'000;  // a group is formed within a fifth of it: that long the trainer blocks

std::int64_t published_beat(Bulletin& board) {
  const auto value = board.read({"beat/0"}, kReply_ms).front();
  const auto state = value ? parse_rank_state(*value) : std::nullopt;
  return state ? state->beat : -1;
}

TEST(WatchdogConnection, ABlockedTrainerDoesNotSilenceTheHeartbeat) {
  const int port = tests::free_port();
  const std::shared_ptr<void> host = host_store(port);
  const std::unique_ptr<Store> trainers = connect_store({"127.0.0.1", port}, kReply_ms, kReply_ms);
  const std::unique_ptr<Bulletin> observer = make_store_bulletin("127.0.0.1", port, "board/");
  Progress progress;
  Watchdog watchdog({.rank = 0, .host = "here", .address = "127.0.0.1", .timeout_ms = kTimeout_ms}, progress);
  watchdog.meet({watchdog.endpoint()}, [&] { return make_cloned_bulletin(*trainers, "board/"); });
  while (published_beat(*observer) < 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));

  std::atomic<bool> blocked{true};
  std::thread trainer([&] {  // waits on the store for a rank that never comes
    const GlooSettings lonely{.rank = 0, .size = 2, .timeout_ms = kTimeout_ms, .address = "127.0.0.1", .prefix = "g"};
    EXPECT_THROW(make_gloo_group(*trainers, lonely, plain_failure_handler("test")), Error);
    blocked = false;
  });
  std::this_thread::sleep_for(std::chrono::seconds(1));  // blocked by now; forming takes six seconds
  const std::int64_t before = published_beat(*observer);
  int moves = 0;
  for (std::int64_t last = before; blocked && moves < 3;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::int64_t now = published_beat(*observer);
    if (now > last && blocked) ++moves;
    last = now;
  }
  EXPECT_EQ(moves, 3) << "the heartbeat did not move while the trainer waited";
  trainer.join();
}

}  // namespace
}  // namespace thinwire::comm
