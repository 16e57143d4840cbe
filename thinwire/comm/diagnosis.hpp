// Who is to blame when an operation has failed: a pure function from what was observed to a verdict, and its words.
// No sockets, no clocks, no Torch; diagnosis_judge.hpp gathers the observations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/comm/probe.hpp"

namespace thinwire::comm {

struct PeerObservation {
  Endpoint peer;
  Reach reach = Reach::kUnreachable;
  std::string detail;              // "connection refused"
  bool no_route = false;           // our own kernel knows no way to it
  std::optional<RankState> state;  // what it answered (kAnswered)
  std::optional<RankState> seen;   // what it published last, from the store
  std::optional<RankState> left;   // it has ended and said so, before any operation of its own had failed
  bool beat_moved = false;         // two looks at the store, a second apart, showed different beats
};

enum class StoreState : int { kNone, kAnswering, kSilent };

struct Observations {
  RankState self;  // as it waited when its operation failed
  std::vector<PeerObservation> peers;
  StoreState store = StoreState::kNone;
  int store_host = -1;          // rank whose process or machine holds the store; -1: somebody outside the job
  bool interface_up = true;     // our own
  std::int64_t timeout_ms = 0;  // T
};

enum class Verb : int {
  kGone,         // its process has ended
  kStopped,      // its process is there and does not run
  kUnreachable,  // its machine does not answer us, though others do
  kSlow,         // it runs and has not come to the operation that the others wait in
  kResumed,      // it was stopped for so long that the others gave up; it runs again
  kBehind,       // everybody waits, in different operations: these wait in an earlier one
  kNobody,       // everybody waits in the same operation, or a connection broke between healthy ranks
  kCutOff,       // this rank reaches nobody: it blames nobody
};

struct Verdict {
  Verb verb = Verb::kNobody;
  std::vector<int> ranks;  // who is blamed, ascending; this rank for kCutOff; empty for kNobody
};

// Steps: the surest evidence first (ended, then silent, then unreachable, then slow).
Verdict decide(const Observations& seen);

// The text that all survivors share, without anything that only this rank knows:
//   rank 2 (host b, pid 4711) is gone: connection refused; last seen in step 200 bucket 2 hop 1. ranks 0, 1 were
//   waiting in step 200 bucket 2 hop 1. Store: answering. try ...
std::string describe(const Verdict& verdict, const Observations& seen);

// "step 200 bucket 2 hop 1"; what is not known is left out.
std::string position(const RankState& state);

// "rank 2", "ranks 0, 1, 5", "no rank".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace thinwire::comm
