// What the watchdog tells about a rank while it waits in a collective that belongs to no bucket.
#pragma once

#include "thinwire/comm/progress.hpp"

namespace thinwire::train {

// Without it a rank that waits in a barrier would look as if it computed, and would be taken for the slow one.
// Afterwards the progress is what it was before.
class WaitingScope {
 public:
  explicit WaitingScope(comm::Progress& progress)
      : progress_(progress),
        bucket_(progress.bucket.exchange(-1)),
        hop_(progress.hop.exchange(0)),
        phase_(progress.phase.exchange(comm::Phase::kWaiting)) {}
  ~WaitingScope() {
    progress_.bucket = bucket_;
    progress_.hop = hop_;
    progress_.phase = phase_;
  }
  WaitingScope(const WaitingScope&) = delete;
  WaitingScope& operator=(const WaitingScope&) = delete;

 private:
  comm::Progress& progress_;
  int bucket_;
  int hop_;
  comm::Phase phase_;
};

}  // namespace thinwire::train
