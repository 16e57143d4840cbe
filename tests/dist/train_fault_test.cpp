// One rank of a training job dies, stops, is slow, is cut off or runs out of batches: what the others say, in every
// stage of training and in the caller's own collectives.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/dist/fault_cases.hpp"
#include "tests/dist/train_bodies.hpp"

namespace thinwire::testing_faults {
namespace {

constexpr double kEnd_s = kTimeout_s + 20;  // far above every limit; a rank that is still there then has hung

// Which hop the others are in when the victim acts differs from run to run.
constexpr Operation kDense{"dense", "dense"};
constexpr Operation kOneBit{"one_bit", "hop "};
constexpr Operation kMean{"mean", "mean of the caller's values"};
constexpr Operation kBarrier{"barrier", "barrier"};

Fault training(const Fault& fault) {
  Fault result = fault;
  result.program = THINWIRE_TRAIN_RANK;
  return result;
}

std::vector<Outcome> run_under_each(const std::vector<Operation>& operations, const Fault& fault,
                                    const During& during) {
  std::vector<Outcome> outcomes(operations.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = run_under(operations[i], training(fault), during); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

During wait_for(std::vector<int> ranks) {
  return [ranks](FaultJob& job, FaultNetwork*) { job.await_end(ranks, kEnd_s); };
}

void expect_trained_alike(const Outcome& outcome) {
  std::vector<std::string> states;
  for (const RankResult& rank : outcome.ranks) {
    EXPECT_EQ(rank.exit_status, 0) << outcome.operation.words << ": " << rank.error << rank.log;
    EXPECT_TRUE(rank.done);
    const auto lines = tests::lines_of(rank.log, "STATE");
    ASSERT_EQ(lines.size(), 1u) << rank.log;
    states.push_back(lines[0]);
  }
  for (const std::string& state : states) EXPECT_EQ(state, states[0]) << outcome.operation.words;
}

TEST(TrainFault, AKilledRankIsGone) {
  const Fault fault{.victim = 1, .action = "kill"};
  for (const Outcome& outcome : run_under_each({kDense, kOneBit, kMean, kBarrier}, fault, wait_for({0, 2}))) {
    expect_one_error(outcome,
                     {.survivors = {0, 2}, .phrases = {named(1), "is gone: connection refused"}, .limit_s = 3});
    EXPECT_EQ(outcome.ranks[1].signal, SIGKILL);
  }
}

TEST(TrainFault, AShortStopIsSurvivedAndRanksStayIdentical) {
  const Fault fault{.victim = 2, .action = "stop", .steps = kFaultStep + 20};
  const auto outcomes = run_under_each({kDense, kOneBit}, fault, [](FaultJob& job, FaultNetwork*) {
    std::this_thread::sleep_for(std::chrono::seconds(kTimeout_s / 2));
    job.send(2, SIGCONT);
    job.await_end({0, 1, 2}, kEnd_s);
  });
  for (const Outcome& outcome : outcomes) expect_trained_alike(outcome);
}

TEST(TrainFault, ALongStopIsNamedAndTheStoppedRankLearnsIt) {
  const Fault fault{.victim = 2, .action = "stop"};
  const auto outcomes = run_under_each({kDense, kOneBit, kMean, kBarrier}, fault, [](FaultJob& job, FaultNetwork*) {
    job.await_end({0, 1}, kEnd_s);
    job.send(2, SIGCONT);
    job.await_end({2}, kEnd_s);
  });
  for (const Outcome& outcome : outcomes) {
    expect_one_error(outcome, {.survivors = {0, 1}, .phrases = {named(2), "is stopped"}});
    expect_one_error(outcome, {.survivors = {0, 1, 2}, .phrases = {named(2), "is stopped"}, .limit_s = 60});
  }
}

void expect_named_slow(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    expect_one_error(outcome,
                     {.survivors = {0, 2}, .phrases = {named(1), "is slow (computing)", "THINWIRE_TIMEOUT_S"}});
    expect_one_error(outcome, {.survivors = {0, 1, 2}, .phrases = {named(1), "is slow (computing)"}, .limit_s = 60});
  }
}

TEST(TrainFault, ARankThatIsSlowBetweenStepsIsNamed) {
  const Fault fault{.victim = 1, .action = "sleep:" + std::to_string(kTimeout_s + 4)};
  expect_named_slow(run_under_each({kDense, kOneBit, kMean, kBarrier}, fault, wait_for({0, 1, 2})));
}

// Its communication thread has finished the buckets it was given, and would seem to wait with the others.
TEST(TrainFault, ARankThatIsSlowInsideBackwardIsNamed) {
  const Fault fault{.victim = 1, .action = "nap:" + std::to_string(kTimeout_s + 4)};
  expect_named_slow(run_under_each({kDense, kOneBit}, fault, wait_for({0, 1, 2})));
}

TEST(TrainFault, ARankThatIsCutOffIsUnreachable) {
  const std::string why = why_no_namespaces();
  if (!why.empty()) GTEST_SKIP() << why;
  // The victim pauses, so that the others are where we want them when the link goes down.
  const Fault fault{.victim = 2, .action = "sleep:1", .network = true};
  const auto outcomes = run_under_each({kDense, kOneBit, kBarrier}, fault, [](FaultJob& job, FaultNetwork* network) {
    network->cut_outside(2);
    job.await_end({0, 1, 2}, kEnd_s);
  });
  for (const Outcome& outcome : outcomes) {
    expect_one_error(outcome, {.survivors = {0, 1}, .phrases = {named(2), "is unreachable"}});
    expect_one_error(outcome, {.survivors = {2},
                               .phrases = {named(2), "is cut off: it reaches no other rank"},
                               .limit_s = kTimeout_s + 5.0,
                               .threads_allowed = 2});
  }
}

TEST(TrainFault, ARankWithFewerBatchesIsSaidToHaveEnded) {
  const Fault fault{.victim = 2, .action = "leave"};
  for (const Outcome& outcome : run_under_each({kDense, kOneBit}, fault, wait_for({0, 1, 2}))) {
    expect_one_error(outcome,
                     {.survivors = {0, 1}, .phrases = {named(2), "is gone: its program has ended without an error"}});
    EXPECT_EQ(outcome.ranks[2].exit_status, 0) << outcome.ranks[2].error;
  }
}

TEST(TrainFault, ARankWithFewerBatchesMayJoin) {
  const Fault fault{.victim = 1, .action = "join", .steps = kFaultStep + 20};
  for (const Outcome& outcome : run_under_each({kDense, kOneBit}, fault, wait_for({0, 1, 2})))
    expect_trained_alike(outcome);
}

TEST(TrainFault, ARankThatDiesWhileOthersWaitWithACheckpointIsGone) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("thinwire_fault_" + std::to_string(::getpid()));
  const std::string save = "save:" + (folder / "save").string(), load = "load:" + (folder / "load").string();
  const std::vector<Operation> operations{{save.c_str(), "verdict on the checkpoint"},
                                          {load.c_str(), "verdict on the checkpoint"}};
  const Fault fault{.victim = 1, .action = "kill"};
  for (const Outcome& outcome : run_under_each(operations, fault, wait_for({0, 2})))
    expect_one_error(outcome, {.survivors = {0, 2}, .phrases = {named(1), "is gone"}, .limit_s = 3});
  fs::remove_all(folder);
}

// Found before the first gradient is sent; the victim has no fault to come to.
void expect_mismatch(const std::string& operation, const std::vector<std::string>& phrases) {
  SCOPED_TRACE(operation);
  JobSettings settings{.timeout_s = kTimeout_s, .program = THINWIRE_TRAIN_RANK};
  settings.arguments = {operation, "3", "1", "mark", "-1"};
  FaultJob job(settings);
  EXPECT_TRUE(job.await_end({0, 1, 2}, kStart_s));
  const auto ranks = job.finish();
  for (const RankResult& rank : ranks) {
    EXPECT_EQ(rank.exit_status, 3) << rank.log;
    EXPECT_EQ(rank.error.rfind("mismatch: ", 0), 0u) << rank.error;
    EXPECT_EQ(rank.error, ranks[0].error);
    for (const std::string& phrase : phrases)
      EXPECT_NE(rank.error.find(phrase), std::string::npos) << "no '" << phrase << "' in: " << rank.error;
  }
}

TEST(TrainFault, AModelOrSettingThatDiffersIsNamedOnEveryRank) {
  expect_mismatch("shape", {"third.weight", "rank 1: ", "[65, 64]", "[64, 64]"});
  expect_mismatch("dtype", {"rank 1: ", "first.weight", "ouble"});
  expect_mismatch("setting", {"bucket_bytes", "rank 1: ", "16384", "8192"});
}

}  // namespace
}  // namespace thinwire::testing_faults
