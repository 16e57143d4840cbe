#include "tests/dist/fault_cases.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "thinwire/base/clock.hpp"
#include "thinwire/comm/diagnosis_judge.hpp"

namespace thinwire::testing_faults {
namespace {

// The texts differ in who says it only.
std::string common_text(const RankResult& rank) {
  return comm::common_part(rank.error);
}

void expect_ended_well(const RankResult& result, const Expected& expected) {
  EXPECT_FALSE(result.overdue) << "had to be ended by the harness";
  EXPECT_EQ(result.signal, 0) << "ended by a signal";
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_LE(result.end_s - result.error_s, kLeave_s) << "the process did not end after its Error";
  EXPECT_LE(result.threads_left, 1 + expected.threads_allowed) << "threads left";
  EXPECT_LE(result.sockets_left, 2 * expected.threads_allowed) << "sockets left";
}

}  // namespace

std::vector<int> all_but(int size, int victim) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (rank != victim) ranks.push_back(rank);
  return ranks;
}

std::string named(int rank) {
  return "rank " + std::to_string(rank) + " (host ";
}

Outcome run_under(const Operation& operation, const Fault& fault, const During& during) {
  std::unique_ptr<FaultNetwork> network;
  if (fault.network) network = std::make_unique<FaultNetwork>(fault.size);
  JobSettings settings{.size = fault.size, .timeout_s = kTimeout_s, .program = fault.program, .network = network.get()};
  settings.arguments = {operation.argument, std::to_string(fault.steps), std::to_string(fault.victim), fault.action,
                        std::to_string(kFaultStep)};
  // Loading Torch takes a processor for a second per rank and T bounds the start as well: one job after the other.
  static std::mutex start_turn;
  std::unique_lock turn(start_turn);
  FaultJob job(settings);
  Outcome outcome{operation};
  const auto ready_s = job.await_ready(fault.victim, kStart_s);
  turn.unlock();
  outcome.reached = ready_s.has_value();
  outcome.fault_s = ready_s.value_or(0);
  if (outcome.reached) during(job, network.get());
  outcome.ranks = job.finish();
  return outcome;
}

std::vector<Outcome> run_under_every_operation(const Fault& fault, const During& during) {
  std::vector<Outcome> outcomes(std::size(kOperations));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = run_under(kOperations[i], fault, during); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void expect_one_error(const Outcome& outcome, const Expected& expected) {
  SCOPED_TRACE(outcome.operation.words);
  std::string logs;
  for (const RankResult& rank : outcome.ranks) logs += "--- pid " + std::to_string(rank.pid) + "\n" + rank.log;
  ASSERT_TRUE(outcome.reached) << "the victim never came to the fault\n" << logs;
  std::set<std::string> texts;
  for (int survivor : expected.survivors) {
    SCOPED_TRACE("rank " + std::to_string(survivor));
    const RankResult& result = outcome.ranks[survivor];
    expect_ended_well(result, expected);
    ASSERT_FALSE(result.error.empty()) << logs;
    texts.insert(common_text(result));
    for (const std::string& phrase : expected.phrases)
      EXPECT_NE(result.error.find(phrase), std::string::npos) << "no '" << phrase << "' in: " << result.error;
    EXPECT_NE(result.error.find(outcome.operation.words), std::string::npos) << result.error;
    EXPECT_LE(result.error_s - outcome.fault_s, expected.limit_s) << result.error;
  }
  EXPECT_EQ(texts.size(), 1u) << "survivors disagree:\n" << testing::PrintToString(texts);
}

}  // namespace thinwire::testing_faults
