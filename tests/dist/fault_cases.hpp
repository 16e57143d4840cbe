// What every fault test does: runs the same fault under each operation at once, then checks every survivor's words.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/dist/fault_harness.hpp"

namespace thinwire::testing_faults {

inline constexpr int kTimeout_s = 4;  // T
inline constexpr int kStart_s = 40;   // for processes to load, find each other and reach the fault
inline constexpr int kLeave_s = 10;   // from the Error to the end of the process, leftovers counted for 1 s of it
inline constexpr int kFaultStep = 5;
inline constexpr int kEndless = 1'000'000;  // steps that no test reaches

struct Operation {
  const char* argument;  // of fault_rank
  const char* words;     // in the message
};
inline constexpr Operation kOperations[] = {
    {"hop1", "hop 1"}, {"hop2", "hop 2"}, {"dense", "dense"}, {"barrier", "barrier"}};

struct Fault {
  int size = 3;
  int victim = 2;
  std::string action = "mark";  // of the victim, at kFaultStep
  std::int64_t steps = kEndless;
  bool network = false;      // a namespace per rank
  std::string program = {};  // empty: fault_rank
};

struct Outcome {
  Operation operation = kOperations[0];
  bool reached = false;  // the victim came to the fault
  double fault_s = 0;    // when
  std::vector<RankResult> ranks = {};
};

// `during` runs once the victim has said "ready", on a thread of its own, and returns when the job may be ended.
using During = std::function<void(FaultJob&, FaultNetwork*)>;
std::vector<Outcome> run_under_every_operation(const Fault& fault, const During& during);
Outcome run_under(const Operation& operation, const Fault& fault, const During& during);

std::vector<int> all_but(int size, int victim);

// Each of `survivors` has ended with one Error within `limit_s` of the fault, status 3, no thread of ours or socket
// left but `threads_allowed` abandoned ones, a text that contains each of `phrases` and the operation; the common part
// of all texts is the same.
struct Expected {
  std::vector<int> survivors = {};
  std::vector<std::string> phrases = {};
  double limit_s = kTimeout_s + 3;
  int threads_allowed = 0;
};
void expect_one_error(const Outcome& outcome, const Expected& expected);

// "rank 2 (host"
std::string named(int rank);

}  // namespace thinwire::testing_faults
