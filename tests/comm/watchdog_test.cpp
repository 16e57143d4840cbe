#include "thinwire/comm/watchdog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/comm/watchdog_fakes.hpp"
#include "thinwire/comm/diagnosis.hpp"

namespace thinwire::comm {
namespace {

constexpr std::int64_t kLong_ms = 10'000;

// Waits for something that must come; ctest's limit ends the program if it does not.
void await(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

Answer ask_state(Watchdog& watchdog) {
  const auto endpoint = parse_endpoint(watchdog.endpoint());
  return ask(std::vector<Endpoint>{endpoint.value()}, {RequestKind::kState, 0, ""}, kLong_ms).front();
}

RankState answered_state(Watchdog& watchdog) {
  const Answer answer = ask_state(watchdog);
  EXPECT_EQ(answer.reach, Reach::kAnswered);
  return parse_rank_state(answer.text).value();
}

TEST(Watchdog, AnswersWhatTheRankIsDoing) {
  WatchedRanks ranks(2);
  ranks.progress[1].step = 200;
  ranks.progress[1].bucket = 2;
  ranks.progress[1].hop = 1;
  ranks.progress[1].phase = Phase::kWaiting;
  const RankState state = answered_state(ranks[1]);
  EXPECT_EQ(state.rank, 1);
  EXPECT_EQ(state.host, "host1");
  EXPECT_EQ(state.pid, ::getpid());
  EXPECT_EQ(position(state), "step 200 bucket 2 hop 1");
  EXPECT_EQ(state.phase, Phase::kWaiting);
  EXPECT_EQ(state.failed, Failed::kNo);
}

TEST(Watchdog, PublishesABeatThatMoves) {
  auto board = std::make_shared<Board>();
  WatchedRanks ranks(2, board);
  await([&] { return board->look("beat/1").has_value(); });
  const std::int64_t first = parse_rank_state(*board->look("beat/1")).value().beat;
  await([&] { return parse_rank_state(*board->look("beat/1")).value().beat > first; });
}

TEST(Watchdog, KnowsWhatThePeersPublished) {
  auto board = std::make_shared<Board>();
  WatchedRanks ranks(3, board);
  ranks.progress[2].step = 77;
  StoreLine* line = ranks[0].store_line();
  await([&] {
    const auto looked = line->await_look(line->request_look(), kLong_ms);
    return looked && looked->size() == 2 && (*looked)[1] && parse_rank_state(*(*looked)[1])->step == 77;
  });
  EXPECT_EQ(parse_rank_state(*line->last_read()[1])->step, 77);
}

TEST(Watchdog, AHangingStoreStopsNeitherBeatNorAnswersNorTheDestructor) {
  auto board = std::make_shared<Board>();
  {
    WatchedRanks ranks(2, board);
    await([&] { return board->look("beat/0").has_value(); });
    board->set_mood(Board::Mood::kHanging);
    EXPECT_FALSE(ranks[0].store_line()->await_look(ranks[0].store_line()->request_look(), 300));
    const std::int64_t beat = answered_state(ranks[0]).beat;
    await([&] { return answered_state(ranks[0]).beat > beat + 3; });
  }
  board->set_mood(Board::Mood::kWell);  // the threads left behind find only what they own
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

TEST(Watchdog, OpensANewConnectionAfterAFailure) {
  auto board = std::make_shared<Board>();
  WatchedRanks ranks(1, board);
  await([&] { return board->opened() == 1 && board->look("beat/0"); });
  board->set_mood(Board::Mood::kFailing);
  EXPECT_FALSE(ranks[0].store_line()->await_look(ranks[0].store_line()->request_look(), 300));
  board->set_mood(Board::Mood::kWell);
  await([&] { return board->opened() == 2; });
}

TEST(Watchdog, AFailureFreezesWhereTheRankWaited) {
  WatchedRanks ranks(1);
  ranks.progress[0].step = 5;
  ranks[0].mark_failed({"hop 2", 5, 3}, Failed::kTimeout);
  ranks[0].mark_failed({"barrier", -1, -1}, Failed::kClosed);
  ranks.progress[0].step = 6;
  const RankState state = answered_state(ranks[0]);
  EXPECT_EQ(position(state), "step 5 bucket 3 hop 2");
  EXPECT_EQ(state.failed, Failed::kTimeout);
  EXPECT_EQ(state.phase, Phase::kWaiting);
}

TEST(Watchdog, KeepsTheFirstDiagnosisWhoeverOffersIt) {
  WatchedRanks ranks(2);
  const auto endpoint = std::vector<Endpoint>{parse_endpoint(ranks[1].endpoint()).value()};
  EXPECT_FALSE(ranks[1].settled());
  EXPECT_EQ(ask(endpoint, {RequestKind::kSettle, 0, "first"}, kLong_ms).front().text, "first");
  EXPECT_EQ(ranks[1].settle("second"), "first");
  EXPECT_EQ(ask(endpoint, {RequestKind::kSettle, 0, "third"}, kLong_ms).front().text, "first");
}

TEST(Watchdog, AnEndWithoutFailureIsToldToThePeers) {
  WatchedRanks ranks(3);
  ranks.progress[2].step = 41;
  ranks.watchdogs[2].reset();
  ranks[0].catch_up();
  const auto left = ranks[0].left(2);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->step, 41);
  EXPECT_FALSE(ranks[0].left(1));
}

TEST(Watchdog, AnEndByAnExceptionIsToldAsOne) {
  WatchedRanks ranks(3);
  try {
    const std::unique_ptr<Watchdog> unwound = std::move(ranks.watchdogs[2]);
    throw Error(ErrorCode::kIo, "[test] the disk is full");
  } catch (const Error&) {
  }
  ranks.watchdogs[1].reset();
  ranks[0].catch_up();
  ASSERT_TRUE(ranks[0].left(2));
  EXPECT_EQ(ranks[0].left(2)->failed, Failed::kException);
  ASSERT_TRUE(ranks[0].left(1));
  EXPECT_EQ(ranks[0].left(1)->failed, Failed::kNo);
}

// A world that begins and ends while something else is being unwound has ended well.
TEST(Watchdog, AnExceptionThatWasThereBeforeDoesNotCount) {
  WatchedRanks ranks(1);
  struct Guard {
    std::vector<std::string> endpoints;
    ~Guard() {
      const Progress progress;
      Watchdog watchdog({1, "here", "127.0.0.1", 1'000}, progress);
      endpoints.push_back(watchdog.endpoint());
      watchdog.meet(endpoints);
    }
  };
  try {
    const Guard guard{{ranks[0].endpoint()}};
    throw Error(ErrorCode::kIo, "[test] something else");
  } catch (const Error&) {
  }
  ranks[0].catch_up();
  ASSERT_TRUE(ranks[0].left(1));
  EXPECT_EQ(ranks[0].left(1)->failed, Failed::kNo);
}

TEST(Watchdog, AnEndAfterAFailureIsNotTakenForACleanOne) {
  WatchedRanks ranks(2);
  ranks[1].mark_failed({"hop 1", 1, 0}, Failed::kClosed);
  ranks.watchdogs[1].reset();
  ranks[0].catch_up();
  EXPECT_FALSE(ranks[0].left(1));
}

TEST(Watchdog, RefusesAnEndpointThatIsNone) {
  Progress progress;
  Watchdog watchdog({0, "here", "127.0.0.1", 1'000}, progress);
  EXPECT_THROW(watchdog.meet({"rank=0 nonsense"}), Error);
}

}  // namespace
}  // namespace thinwire::comm
