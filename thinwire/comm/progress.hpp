// What a rank is doing right now, for the watchdog and for error messages. Any thread may read and write.
#pragma once

#include <atomic>
#include <cstdint>

namespace thinwire::comm {

enum class Phase : int { kComputing = 0, kEncoding = 1, kWaiting = 2 };

// Fields are written one by one: a reader may see a step with the bucket of the one before. It is for people, not for
// decisions.
struct Progress {
  std::atomic<std::int64_t> step{0};
  std::atomic<int> bucket{-1};
  std::atomic<int> hop{0};  // 0: none, 1, 2
  std::atomic<Phase> phase{Phase::kComputing};
};

}  // namespace thinwire::comm
