// Turns the first failure of a rank into the one Error that all survivors end with.
//
// How survivors come to the same words: each offers its diagnosis to the lowest-numbered rank that answers and is not
// blamed (itself, possibly); whatever that rank's watchdog heard first is what everybody keeps. The watchdog answers
// while its rank still computes or already leaves the operation, and no store is needed, which may be what has died.
// Then the text is left with every peer that can be reached, so that a rank that sees the failure late - or wakes up
// after a stop - finds it and does not blame those who have ended because of it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/diagnosis.hpp"
#include "thinwire/comm/watchdog.hpp"

namespace thinwire::comm {

struct JudgeLimits {
  std::int64_t ask_ms = 1'000;     // for the direct answers of all peers
  std::int64_t store_ms = 2'000;   // for the store, at the same time
  std::int64_t settle_ms = 1'000;  // for one offer of the diagnosis
  std::int64_t leave_ms = 500;     // for leaving it with the peers
  std::int64_t doubt_ms = 1'000;   // a connection broke, everybody answers: wait for whoever is about to end
};

struct JudgeSettings {
  int store_host = 0;            // rank that holds the store, -1: outside the job
  std::string backend = "gloo";  // whose text goes last
  JudgeLimits limits = {};
};

// Thread safe: the first failure is diagnosed, later and simultaneous ones get the same Error.
class Judge {
 public:
  // `free_others` must make every wait on this job's groups end, here and on the other ranks; called once, first of
  // all. `watchdog` must outlive the judge.
  Judge(Watchdog& watchdog, std::function<void()> free_others, const JudgeSettings& settings = {});
  ~Judge();

  // Takes 1 s when nothing hangs, limits.ask + store + settle + leave at most. Does not throw.
  Error judge(const FailedOperation& operation, const std::string& backend_text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The part of a message of Judge that is the same on all survivors.
std::string common_part(const std::string& message);

}  // namespace thinwire::comm
