// Monotonic time, in seconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace thinwire {

// Seconds on a clock that never goes back; the zero point is the machine's start. Thread safe.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A point in time after which waiting is given up.
class Deadline {
 public:
  static Deadline in_ms(std::int64_t milliseconds) {
    return Deadline(monotonic_seconds() + static_cast<double>(milliseconds) * 1e-3);
  }
  double remaining_s() const { return at_s_ - monotonic_seconds(); }
  bool passed() const { return remaining_s() <= 0; }

 private:
  explicit Deadline(double at_s) : at_s_(at_s) {}
  double at_s_;
};

}  // namespace thinwire
