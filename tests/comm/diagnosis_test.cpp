#include "thinwire/comm/diagnosis.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thinwire/base/error.hpp"

namespace thinwire::comm {
namespace {

RankState waiting(int rank, Failed failed = Failed::kTimeout) {
  return {.rank = rank,
          .pid = 4000 + rank,
          .host = "h" + std::to_string(rank),
          .beat = 9,
          .step = 200,
          .bucket = 2,
          .hop = 1,
          .phase = Phase::kWaiting,
          .operation = failed == Failed::kNo ? "" : "hop 1",
          .failed = failed,
          .gap_ms = 0};
}

RankState computing(int rank) {
  RankState state = waiting(rank, Failed::kNo);
  state.phase = Phase::kComputing;
  return state;
}

PeerObservation observed(int rank, Reach reach, std::optional<RankState> state = std::nullopt) {
  PeerObservation peer;
  peer.peer = {rank, "10.0.0." + std::to_string(rank + 1), 1000, 1, 4000 + rank, "h" + std::to_string(rank)};
  peer.reach = reach;
  peer.detail = reach == Reach::kRefused       ? "connection refused"
                : reach == Reach::kUnreachable ? "no answer to connect"
                                               : "";
  peer.state = state;
  return peer;
}

PeerObservation answers(int rank, const RankState& state) {
  return observed(rank, Reach::kAnswered, state);
}

// Rank `self` of `size` ranks, all healthy and timed out in the same place, the store with rank 0.
Observations all_wait(int size, int self) {
  Observations seen;
  seen.self = waiting(self);
  for (int rank = 0; rank < size; ++rank)
    if (rank != self) seen.peers.push_back(answers(rank, waiting(rank)));
  seen.store = StoreState::kAnswering;
  seen.store_host = 0;
  seen.timeout_ms = 4'000;
  return seen;
}

PeerObservation& peer(Observations& seen, int rank) {
  for (PeerObservation& one : seen.peers)
    if (one.peer.rank == rank) return one;
  throw Error(ErrorCode::kInternal, "[test] no such peer");
}

// What one culprit looks like from outside, and the verb that must come out.
struct Case {
  const char* what;
  Verb verb;
  Reach reach;
  bool answers_computing;
};

class EveryWorld : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, EveryWorld, testing::Values(2, 3, 4));

TEST_P(EveryWorld, OneCulpritIsNamedByEverySurvivorWithItsVerb) {
  const int size = GetParam();
  const Case cases[] = {{"dead", Verb::kGone, Reach::kRefused, false},
                        {"stopped", Verb::kStopped, Reach::kSilent, false},
                        {"slow", Verb::kSlow, Reach::kAnswered, true},
                        {"unreachable", Verb::kUnreachable, Reach::kUnreachable, false}};
  for (const Case& one : cases)
    for (int culprit = 0; culprit < size; ++culprit)
      for (int self = 0; self < size; ++self) {
        if (self == culprit) continue;
        Observations seen = all_wait(size, self);
        peer(seen, culprit) =
            one.answers_computing ? answers(culprit, computing(culprit)) : observed(culprit, one.reach);
        if (culprit == 0 && one.verb != Verb::kSlow) seen.store = StoreState::kSilent;
        const Verdict verdict = decide(seen);
        EXPECT_EQ(verdict.verb, one.verb) << one.what << " " << culprit << " seen by " << self << " of " << size;
        EXPECT_EQ(verdict.ranks, std::vector<int>{culprit}) << one.what;
      }
}

TEST_P(EveryWorld, ACutOffRankBlamesNobody) {
  const int size = GetParam();
  for (int self = 0; self < size; ++self) {
    Observations seen = all_wait(size, self);
    for (PeerObservation& one : seen.peers) one = observed(one.peer.rank, Reach::kUnreachable);
    seen.store = self == 0 ? StoreState::kAnswering : StoreState::kSilent;
    seen.interface_up = false;
    EXPECT_EQ(decide(seen).verb, Verb::kCutOff) << self;
    EXPECT_EQ(decide(seen).ranks, std::vector<int>{self});
    seen.interface_up = true;
    for (PeerObservation& one : seen.peers) one.no_route = true;
    EXPECT_EQ(decide(seen).verb, Verb::kCutOff) << self;
    for (PeerObservation& one : seen.peers) one.no_route = false;
    // Carrier and routes are there, nobody answers: only more than two ranks settle it.
    EXPECT_EQ(decide(seen).verb, size > 2 ? Verb::kCutOff : Verb::kUnreachable) << self;
  }
}

TEST(Decide, AStoreOutsideTellsTwoRanksApart) {
  Observations seen = all_wait(2, 1);
  peer(seen, 0) = observed(0, Reach::kUnreachable);
  seen.store_host = -1;
  EXPECT_EQ(decide(seen).verb, Verb::kUnreachable);
  seen.store = StoreState::kSilent;
  EXPECT_EQ(decide(seen).verb, Verb::kCutOff);
}

TEST(Decide, TwoRanksThatCannotTellSaySo) {
  Observations seen = all_wait(2, 1);
  peer(seen, 0) = observed(0, Reach::kUnreachable);
  seen.store = StoreState::kSilent;
  EXPECT_NE(describe(decide(seen), seen).find("nobody can tell"), std::string::npos);
  Observations three = all_wait(3, 1);
  peer(three, 0) = observed(0, Reach::kUnreachable);
  EXPECT_EQ(describe(decide(three), three).find("nobody can tell"), std::string::npos);
}

TEST(Decide, SurerEvidenceGoesFirst) {
  Observations seen = all_wait(4, 0);
  peer(seen, 1) = observed(1, Reach::kUnreachable);
  peer(seen, 2) = observed(2, Reach::kSilent);
  EXPECT_EQ(decide(seen).verb, Verb::kStopped);
  peer(seen, 3) = observed(3, Reach::kRefused);
  EXPECT_EQ(decide(seen).verb, Verb::kGone);
  EXPECT_EQ(decide(seen).ranks, std::vector<int>{3});
}

TEST(Decide, NamesEveryoneWhoIsGone) {
  Observations seen = all_wait(4, 1);
  peer(seen, 3) = observed(3, Reach::kRefused);
  peer(seen, 0) = observed(0, Reach::kRefused);
  EXPECT_EQ(decide(seen).ranks, (std::vector<int>{0, 3}));
}

TEST(Decide, AClosedConnectionDoesNotMakeAComputingRankSlow) {
  Observations seen = all_wait(3, 0);
  seen.self.failed = Failed::kClosed;
  peer(seen, 1) = answers(1, computing(1));
  peer(seen, 2) = answers(2, waiting(2, Failed::kClosed));
  EXPECT_EQ(decide(seen).verb, Verb::kNobody);
  peer(seen, 2) = answers(2, waiting(2, Failed::kTimeout));  // it shut the groups down when its wait expired
  EXPECT_EQ(decide(seen).verb, Verb::kSlow);
  EXPECT_EQ(decide(seen).ranks, std::vector<int>{1});
}

TEST(Decide, EverybodyWaitsInTheSamePlace) {
  EXPECT_EQ(decide(all_wait(3, 1)).verb, Verb::kNobody);
}

TEST(Decide, WhoWaitsInAnEarlierOperationIsBehind) {
  for (int self = 0; self < 3; ++self) {
    Observations seen = all_wait(3, self);
    (self == 2 ? seen.self : *peer(seen, 2).state).bucket = 1;
    EXPECT_EQ(decide(seen).verb, Verb::kBehind);
    EXPECT_EQ(decide(seen).ranks, std::vector<int>{2});
  }
}

TEST(Decide, AStopThatIsOverIsStillSeen) {
  Observations seen = all_wait(3, 0);
  peer(seen, 2).state->gap_ms = 4'100;
  EXPECT_EQ(decide(seen).verb, Verb::kResumed);
  EXPECT_EQ(decide(seen).ranks, std::vector<int>{2});
}

TEST(Decide, WhoWasStoppedItselfBlamesNobodyElse) {
  Observations seen = all_wait(3, 2);
  for (PeerObservation& one : seen.peers) one = observed(one.peer.rank, Reach::kRefused);
  seen.self.gap_ms = 5'000;
  EXPECT_EQ(decide(seen).verb, Verb::kResumed);
  EXPECT_EQ(decide(seen).ranks, std::vector<int>{2});
}

TEST(Decide, AProgramThatEndedWithoutErrorIsGoneAndSaysSo) {
  Observations seen = all_wait(2, 0);
  seen.self.failed = Failed::kClosed;
  peer(seen, 1).left = computing(1);
  const std::string text = describe(decide(seen), seen);
  EXPECT_NE(text.find("rank 1 (host h1, pid 4001) is gone: its program has ended without an error"), std::string::npos)
      << text;
}

TEST(Describe, SaysWhoWhereTheOthersAndTheStore) {
  Observations seen = all_wait(3, 0);
  peer(seen, 2) = observed(2, Reach::kRefused);
  peer(seen, 2).seen = computing(2);
  EXPECT_EQ(
      describe(decide(seen), seen),
      "rank 2 (host h2, pid 4002) is gone: connection refused; last seen in step 200 bucket 2 hop 1. ranks 0, 1 "
      "were waiting in step 200 bucket 2 hop 1. Store: answering. try reading that rank's own output and the kernel "
      "log for the reason (exit, out of memory, signal)");
}

TEST(Describe, ASlowRankIsSaidToCompute) {
  Observations seen = all_wait(3, 0);
  peer(seen, 1) = answers(1, computing(1));
  EXPECT_NE(describe(decide(seen), seen).find("rank 1 (host h1, pid 4001) is slow (computing)"), std::string::npos);
}

TEST(Describe, ADeadStoreHostIsNamed) {
  Observations seen = all_wait(3, 1);
  peer(seen, 0) = observed(0, Reach::kRefused);
  seen.store = StoreState::kSilent;
  EXPECT_NE(describe(decide(seen), seen).find("Store (held by rank 0): not answering."), std::string::npos);
}

TEST(Describe, SurvivorsThatSawTheSameSayTheSame) {
  std::vector<std::string> texts;
  for (int self : {0, 1, 3}) {
    Observations seen = all_wait(4, self);
    peer(seen, 2) = observed(2, Reach::kSilent);
    texts.push_back(describe(decide(seen), seen));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[1], texts[2]);
}

TEST(Describe, EveryVerbHasARemedy) {
  Observations seen = all_wait(2, 0);
  for (int verb = 0; verb <= static_cast<int>(Verb::kCutOff); ++verb) {
    const bool self_blamed = static_cast<Verb>(verb) == Verb::kCutOff;
    const std::string text = describe({static_cast<Verb>(verb), {self_blamed ? 0 : 1}}, seen);
    const std::size_t at = text.find(" try ");
    ASSERT_NE(at, std::string::npos) << verb;
    EXPECT_GT(text.size(), at + 20) << verb;
  }
}

}  // namespace
}  // namespace thinwire::comm
