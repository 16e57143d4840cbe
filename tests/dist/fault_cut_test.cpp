// A rank's link goes down: the others call it unreachable, it says of itself that it is cut off. One namespace per
// rank.
#include <gtest/gtest.h>

#include "tests/dist/fault_cases.hpp"
#include "thinwire/comm/diagnosis_judge.hpp"

namespace thinwire::testing_faults {
namespace {

constexpr double kEnd_s = kTimeout_s + 20;

using Cut = void (FaultNetwork::*)(int rank);

class FaultCut : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_no_namespaces();
    if (!why.empty()) GTEST_SKIP() << why;
  }

  static std::vector<Outcome> cut(int size, int victim, Cut how) {
    const Fault fault{.size = size, .victim = victim, .network = true};
    return run_under_every_operation(fault, [=](FaultJob& job, FaultNetwork* network) {
      (network->*how)(victim);
      std::vector<int> everybody = all_but(size, size);
      job.await_end(everybody, kEnd_s);
    });
  }

  static void expect_cut(const Outcome& outcome, int size, int victim) {
    const bool store_cut = victim == 0;
    expect_one_error(outcome, {.survivors = all_but(size, victim),
                               .phrases = {named(victim), "is unreachable"},
                               .limit_s = kTimeout_s + (store_cut ? 5.0 : 3.0),
                               .threads_allowed = store_cut ? 2 : 0});
    // The one that was cut off may have to leave a call to the store behind.
    expect_one_error(outcome, {.survivors = {victim},
                               .phrases = {named(victim), "is cut off: it reaches no other rank"},
                               .limit_s = kTimeout_s + 5.0,
                               .threads_allowed = 2});
  }
};

TEST_F(FaultCut, WithoutCarrier) {
  for (const Outcome& outcome : cut(3, 2, &FaultNetwork::cut_outside)) expect_cut(outcome, 3, 2);
}

TEST_F(FaultCut, WithoutInterface) {
  for (const Outcome& outcome : cut(3, 1, &FaultNetwork::cut_inside)) expect_cut(outcome, 3, 1);
}

TEST_F(FaultCut, BlackholeWithCarrier) {
  for (const Outcome& outcome : cut(3, 1, &FaultNetwork::blackhole)) expect_cut(outcome, 3, 1);
}

TEST_F(FaultCut, TheStoreHost) {
  for (const Outcome& outcome : cut(3, 0, &FaultNetwork::cut_outside)) expect_cut(outcome, 3, 0);
}

TEST_F(FaultCut, OneOfTwoRanksKnowsByItsInterface) {
  for (const Outcome& outcome : cut(2, 1, &FaultNetwork::cut_outside)) expect_cut(outcome, 2, 1);
}

// No link is cut: rank 1 itself listens where only its own host can reach it.
TEST_F(FaultCut, LoopbackBetweenHostsIsRefusedOnEveryRank) {
  FaultNetwork network(3);
  JobSettings settings{.size = 3, .timeout_s = kTimeout_s, .network = &network};
  settings.arguments = {"barrier", "1", "-1", "mark", "0"};
  settings.variables = {{1, {{"GLOO_SOCKET_IFNAME", "lo"}}}};
  FaultJob job(settings);
  EXPECT_TRUE(job.await_end({0, 1, 2}, kStart_s));
  for (const RankResult& rank : job.finish()) {
    EXPECT_EQ(rank.exit_status, 3) << rank.log;
    EXPECT_NE(rank.error.find(named(1)), std::string::npos) << rank.error;
    EXPECT_NE(rank.error.find("listens on loopback, where ranks on other hosts cannot reach it; got address 127.0.0.1"),
              std::string::npos)
        << rank.error;
  }
}

}  // namespace
}  // namespace thinwire::testing_faults
