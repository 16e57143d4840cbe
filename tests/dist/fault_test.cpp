// One rank of a job dies, stops, is slow or never comes: what the others say, under every operation. Loopback.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/dist/fault_cases.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/comm/diagnosis_judge.hpp"

namespace thinwire::testing_faults {
namespace {

constexpr double kEnd_s = kTimeout_s + 20;  // far above every limit; a rank that is still there then has hung

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

During wait_for(std::vector<int> ranks) {
  return [ranks](FaultJob& job, FaultNetwork*) { job.await_end(ranks, kEnd_s); };
}

// Ends the stop when the survivors have ended, then waits for the one that was stopped.
During wait_and_resume(int size, int victim) {
  return [=](FaultJob& job, FaultNetwork*) {
    job.await_end(all_but(size, victim), kEnd_s);
    job.send(victim, SIGCONT);
    job.await_end({victim}, kEnd_s);
  };
}

TEST(Fault, AKilledRankIsGone) {
  const Fault fault{.size = 4, .victim = 1, .action = "kill"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for(all_but(4, 1)))) {
    expect_one_error(outcome, {.survivors = all_but(4, 1),
                               .phrases = {named(1), "is gone: connection refused", "Store: answering", "try "},
                               .limit_s = 3});
    EXPECT_EQ(outcome.ranks[1].signal, SIGKILL);
  }
}

TEST(Fault, AShortStopIsSurvived) {
  const Fault fault{.victim = 2, .action = "stop", .steps = kFaultStep + 20};
  const auto outcomes = run_under_every_operation(fault, [](FaultJob& job, FaultNetwork*) {
    sleep_s(kTimeout_s * 0.5);
    job.send(2, SIGCONT);
    job.await_end({0, 1, 2}, kEnd_s);
  });
  for (const Outcome& outcome : outcomes)
    for (const RankResult& rank : outcome.ranks) {
      EXPECT_EQ(rank.exit_status, 0) << outcome.operation.words << ": " << rank.error;
      EXPECT_TRUE(rank.done);
    }
}

TEST(Fault, ALongStopIsNamedAndTheStoppedRankLearnsIt) {
  const Fault fault{.victim = 2, .action = "stop"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_and_resume(3, 2))) {
    expect_one_error(outcome, {.survivors = {0, 1}, .phrases = {named(2), "is stopped"}});
    expect_one_error(outcome, {.survivors = {0, 1, 2}, .phrases = {named(2), "is stopped"}, .limit_s = 60});
    EXPECT_NE(outcome.ranks[2].error.find("this process itself was stopped for"), std::string::npos)
        << outcome.ranks[2].error;
  }
}

TEST(Fault, ASlowRankIsSaidToCompute) {
  const Fault fault{.victim = 1, .action = "sleep:" + std::to_string(kTimeout_s + 4)};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for({0, 1, 2}))) {
    expect_one_error(outcome,
                     {.survivors = {0, 2}, .phrases = {named(1), "is slow (computing)", "THINWIRE_TIMEOUT_S"}});
    expect_one_error(outcome, {.survivors = {0, 1, 2}, .phrases = {named(1), "is slow (computing)"}, .limit_s = 60});
  }
}

TEST(Fault, AStoppedStoreHostIsNamedWithoutItsStore) {
  const Fault fault{.victim = 0, .action = "stop"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_and_resume(3, 0))) {
    expect_one_error(outcome, {.survivors = {1, 2},
                               .phrases = {named(0), "is stopped", "Store (held by rank 0): not answering"},
                               .limit_s = kTimeout_s + 5,
                               .threads_allowed = 2});
    EXPECT_EQ(outcome.ranks[0].exit_status, 3);
    EXPECT_EQ(outcome.ranks[0].signal, 0);
  }
}

TEST(Fault, AKilledStoreHostIsNamedWithoutItsStore) {
  const Fault fault{.victim = 0, .action = "kill"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for({1, 2})))
    expect_one_error(outcome, {.survivors = {1, 2},
                               .phrases = {named(0), "is gone", "Store (held by rank 0): not answering"},
                               .limit_s = 5,
                               .threads_allowed = 2});
}

TEST(Fault, ARankThatLeavesEarlyIsSaidToHaveEnded) {
  const Fault fault{.victim = 2, .action = "leave"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for({0, 1, 2}))) {
    expect_one_error(outcome, {.survivors = {0, 1},
                               .phrases = {named(2), "is gone: its program has ended without an error"},
                               .limit_s = kTimeout_s + 3});
    EXPECT_EQ(outcome.ranks[2].exit_status, 0);
  }
}

TEST(Fault, ARankThatAnExceptionEndsIsNotSaidToHaveEndedWell) {
  const Fault fault{.victim = 2, .action = "throw"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for({0, 1, 2}))) {
    expect_one_error(outcome, {.survivors = {0, 1},
                               .phrases = {named(2), "is gone: its program has ended by an exception"},
                               .limit_s = kTimeout_s + 3});
    EXPECT_EQ(outcome.ranks[2].exit_status, 3);
    EXPECT_NE(outcome.ranks[2].error.find("the disk of this rank is full"), std::string::npos);
  }
}

// A pure C++ program dies silently of SIGPIPE otherwise, as soon as it writes to a rank that has gone.
TEST(Fault, AWriteToARankThatHasGoneDoesNotKill) {
  const Fault fault{.size = 2, .victim = 1, .action = "write", .steps = kFaultStep + 1};
  const Outcome outcome = run_under(kOperations[0], fault, wait_for({0, 1}));
  for (const RankResult& rank : outcome.ranks) {
    EXPECT_EQ(rank.signal, 0) << "signal " << rank.signal;
    EXPECT_EQ(rank.exit_status, 0) << rank.error;
  }
}

TEST(Fault, AStoppedSenderEndsWithOurErrorWhenItRunsAgain) {
  const Operation broadcast{"broadcast", "broadcast"};
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(10);
  for (Outcome& outcome : outcomes)
    threads.emplace_back(
        [&] { outcome = run_under(broadcast, {.size = 2, .victim = 0, .action = "stop"}, wait_and_resume(2, 0)); });
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes)
    expect_one_error(outcome,
                     {.survivors = {0, 1}, .phrases = {named(0), "is stopped"}, .limit_s = 60, .threads_allowed = 2});
}

TEST(Fault, TwoRanksLoseOne) {
  const Fault fault{.size = 2, .victim = 1, .action = "kill"};
  for (const Outcome& outcome : run_under_every_operation(fault, wait_for({0})))
    expect_one_error(outcome, {.survivors = {0}, .phrases = {named(1), "is gone"}, .limit_s = 3});
}

TEST(Fault, ARankThatNeverStartsIsNamed) {
  JobSettings settings{.size = 4, .timeout_s = kTimeout_s, .absent = {1, 3}};
  settings.arguments = {"barrier", "1", "-1", "mark", "0"};
  const double start_s = monotonic_seconds();
  FaultJob job(settings);
  EXPECT_TRUE(job.await_end({0, 2}, kEnd_s));
  const auto ranks = job.finish();
  for (int rank : {0, 2}) {
    EXPECT_EQ(ranks[rank].exit_status, 3);
    EXPECT_NE(ranks[rank].error.find("ranks 1, 3"), std::string::npos) << ranks[rank].error;
    EXPECT_LE(ranks[rank].error_s - start_s, 1.5 * kTimeout_s + 3);
  }
}

}  // namespace
}  // namespace thinwire::testing_faults
