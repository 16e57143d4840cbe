// Events of a run: what each bucket did and when, in a ring of fixed size. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace thinwire::watch {

enum class EventKind {
  kBackward,  // from the first gradient to the end of autograd
  kExposed,   // the trainer's thread waits for the rest of the exchange
  kUpdate,    // the optimizer
  kReady,     // the last gradient of a bucket is there (an instant)
  kEncode,
  kExchangeHop1,  // from the first byte sent to the last received
  kReduce,        // the owner's part between the hops
  kExchangeHop2,
  kDecode,  // where it is not fused into the update
  kDense    // all-reduce of a dense bucket
};
const char* to_string(EventKind kind);

struct Event {
  EventKind kind = EventKind::kReady;
  std::int64_t step = 0;
  int bucket = -1;
  double begin_s = 0;  // seconds on base::monotonic_seconds()
  double end_s = 0;    // equal to begin_s for an instant
  std::int64_t bytes = 0;
};

// Keeps the last `capacity` events. Thread safe; record takes a mutex for a few nanoseconds and never allocates.
class Timeline {
 public:
  explicit Timeline(std::int64_t capacity = 65'536);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void record(const Event& event);
  std::vector<Event> events() const;  // oldest first
  std::int64_t dropped() const;       // events that the ring has overwritten

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::watch
