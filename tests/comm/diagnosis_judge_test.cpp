#include "thinwire/comm/diagnosis_judge.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/watchdog_fakes.hpp"
#include "thinwire/comm/probe_socket.hpp"

namespace thinwire::comm {
namespace {

constexpr const char* kClosed = "Connection closed by peer";
constexpr const char* kTimedOut = "Timed out waiting 4000ms for recv operation to complete";

// Ranks of this process; the last one may be replaced by an endpoint that refuses or stays silent.
class JudgedRanks {
 public:
  enum class Last { kAlive, kRefuses, kSilent };

  JudgedRanks(int size, Last last, std::shared_ptr<Board> board = nullptr) : progress_(size) {
    std::vector<std::string> endpoints;
    const int real = last == Last::kAlive ? size : size - 1;
    for (int rank = 0; rank < real; ++rank) {
      progress_[rank].step = 7;
      progress_[rank].bucket = 3;
      progress_[rank].phase = Phase::kWaiting;
      const WatchdogSettings settings{rank, "h", "127.0.0.1", 60'000};
      watchdogs.push_back(std::make_unique<Watchdog>(settings, progress_[rank]));
      endpoints.push_back(watchdogs.back()->endpoint());
    }
    if (real < size) endpoints.push_back(stand_in(size - 1, last));
    for (auto& watchdog : watchdogs) watchdog->meet(endpoints, board ? open_on(board) : OpenBulletin());
    for (auto& watchdog : watchdogs)
      judges.push_back(std::make_unique<Judge>(
          *watchdog, [this] { ++freed; }, settings()));
  }

  // Every rank of `who` judges at the same time.
  std::vector<Error> judge_all(const std::vector<int>& who, const std::string& text) {
    std::vector<Error> errors(who.size(), Error(ErrorCode::kInternal, ""));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < who.size(); ++i)
      threads.emplace_back([&, i] { errors[i] = judges[who[i]]->judge({"hop 1", 7, 3}, text); });
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  void end(int rank) {
    judges[rank].reset();
    watchdogs[rank].reset();
  }

  Progress& progress(int rank) { return progress_[rank]; }

  std::atomic<int> freed{0};

 private:
  static JudgeSettings settings() {
    return {.limits = {.ask_ms = 300, .store_ms = 600, .settle_ms = 300, .leave_ms = 300, .doubt_ms = 300}};
  }

  std::string stand_in(int rank, Last last) {
    Listening listening = listen_on("127.0.0.1");
    const Endpoint endpoint{rank, "127.0.0.1", listening.port, 1, 999, "h"};
    if (last == Last::kSilent) silent_ = std::move(listening);
    return to_line(endpoint);
  }

  std::vector<Progress> progress_;
  Listening silent_;

 public:
  std::vector<std::unique_ptr<Watchdog>> watchdogs;
  std::vector<std::unique_ptr<Judge>> judges;
};

std::set<std::string> common_parts(const std::vector<Error>& errors) {
  std::set<std::string> parts;
  for (const Error& error : errors) parts.insert(common_part(error.what()));
  return parts;
}

TEST(Judge, AllSurvivorsOfADeathSayTheSame) {
  JudgedRanks ranks(4, JudgedRanks::Last::kRefuses);
  const auto errors = ranks.judge_all({0, 1, 2}, kClosed);
  ASSERT_EQ(common_parts(errors).size(), 1u);
  const std::string text = errors[0].what();
  EXPECT_EQ(errors[0].code(), ErrorCode::kPeerFailure);
  EXPECT_EQ(text.find("[comm::watchdog] rank 3 (host h, pid 999) is gone: connection refused"), 0u) << text;
  EXPECT_NE(text.find("[gloo: Connection closed by peer]"), std::string::npos) << text;
}

TEST(Judge, SurvivorsOfAStopSayTheSame) {
  JudgedRanks ranks(4, JudgedRanks::Last::kSilent);
  const auto errors = ranks.judge_all({0, 1, 2}, kTimedOut);
  EXPECT_EQ(common_parts(errors).size(), 1u);
  EXPECT_NE(std::string(errors[1].what()).find("rank 3 (host h, pid 999) is stopped"), std::string::npos);
}

TEST(Judge, WhoSeesItLateDoesNotBlameThoseWhoHaveLeft) {
  JudgedRanks ranks(4, JudgedRanks::Last::kRefuses);
  const auto early = ranks.judge_all({1, 2}, kClosed);
  ranks.end(1);
  ranks.end(2);
  const auto late = ranks.judge_all({0}, kClosed);
  EXPECT_EQ(common_part(late[0].what()), common_part(early[0].what()));
}

TEST(Judge, TheSlowRankLearnsThatItWasTheOne) {
  JudgedRanks ranks(3, JudgedRanks::Last::kAlive);
  ranks.progress(1).phase = Phase::kComputing;
  const auto errors = ranks.judge_all({0, 2}, kTimedOut);
  EXPECT_EQ(common_parts(errors).size(), 1u);
  ranks.end(0);
  ranks.end(2);
  const auto own = ranks.judge_all({1}, kClosed);
  EXPECT_NE(std::string(own[0].what()).find("rank 1 (host h, pid"), std::string::npos);
  EXPECT_NE(std::string(own[0].what()).find("is slow (computing)"), std::string::npos) << own[0].what();
  EXPECT_EQ(common_part(own[0].what()), common_part(errors[0].what()));
}

TEST(Judge, WhoIsAboutToEndIsWaitedFor) {
  JudgedRanks ranks(3, JudgedRanks::Last::kAlive);
  ranks.progress(2).phase = Phase::kComputing;
  std::thread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ranks.end(2);
  });
  const auto errors = ranks.judge_all({0, 1}, kClosed);
  leaver.join();
  EXPECT_EQ(common_parts(errors).size(), 1u);
  EXPECT_NE(std::string(errors[0].what()).find("rank 2 (host h, pid"), std::string::npos);
  EXPECT_NE(std::string(errors[0].what()).find("its program has ended without an error"), std::string::npos)
      << errors[0].what();
}

TEST(Judge, NobodyToBlameIsATimeout) {
  JudgedRanks ranks(3, JudgedRanks::Last::kAlive);
  const auto errors = ranks.judge_all({0, 1, 2}, kTimedOut);
  EXPECT_EQ(common_parts(errors).size(), 1u);
  for (const Error& error : errors) EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
}

TEST(Judge, AHangingStoreChangesNothingButOneSentence) {
  auto board = std::make_shared<Board>();
  {
    JudgedRanks ranks(3, JudgedRanks::Last::kSilent, board);
    while (!board->look("beat/0") || !board->look("beat/1")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    board->set_mood(Board::Mood::kHanging);
    const auto errors = ranks.judge_all({0, 1}, kTimedOut);
    EXPECT_EQ(common_parts(errors).size(), 1u);
    EXPECT_NE(std::string(errors[0].what()).find("Store (held by rank 0): not answering."), std::string::npos)
        << errors[0].what();
  }
  board->set_mood(Board::Mood::kWell);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

TEST(Judge, SimultaneousFailuresOfOneRankAreOne) {
  JudgedRanks ranks(3, JudgedRanks::Last::kRefuses);
  const auto errors = ranks.judge_all({0, 0, 0, 0}, kClosed);
  EXPECT_EQ(ranks.freed, 1);
  for (const Error& error : errors) EXPECT_STREQ(error.what(), errors[0].what());
}

}  // namespace
}  // namespace thinwire::comm
