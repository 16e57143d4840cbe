#include "thinwire/watch/timeline.hpp"

#include <algorithm>
#include <mutex>

#include "thinwire/base/error.hpp"

namespace thinwire::watch {

const char* to_string(EventKind kind) {
  switch (kind) {
    case EventKind::kBackward:
      return "backward";
    case EventKind::kExposed:
      return "exposed";
    case EventKind::kReady:
      return "ready";
    case EventKind::kEncode:
      return "encode";
    case EventKind::kExchangeHop1:
      return "hop 1";
    case EventKind::kReduce:
      return "reduce";
    case EventKind::kExchangeHop2:
      return "hop 2";
    case EventKind::kDecode:
      return "decode";
    case EventKind::kUpdate:
      return "update";
    case EventKind::kDense:
      return "dense";
  }
  return "unknown";
}

struct Timeline::Impl {
  mutable std::mutex mutex;
  std::vector<Event> ring;  // guarded by mutex, as is the next; event i lies at i % ring.size()
  std::int64_t recorded = 0;
};

Timeline::Timeline(std::int64_t capacity) : impl_(std::make_unique<Impl>()) {
  if (capacity < 1) {
    fail(ErrorCode::kInvalidArgument, {.place = "watch::Timeline",
                                       .what = "capacity",
                                       .got = std::to_string(capacity),
                                       .want = "at least 1",
                                       .hint = ""});
  }
  impl_->ring.resize(static_cast<std::size_t>(capacity));
}

Timeline::~Timeline() = default;

void Timeline::record(const Event& event) {
  const std::lock_guard lock(impl_->mutex);
  impl_->ring[static_cast<std::size_t>(impl_->recorded) % impl_->ring.size()] = event;
  ++impl_->recorded;
}

std::vector<Event> Timeline::events() const {
  const std::lock_guard lock(impl_->mutex);
  const auto capacity = static_cast<std::int64_t>(impl_->ring.size());
  std::vector<Event> events;
  events.reserve(static_cast<std::size_t>(std::min(impl_->recorded, capacity)));
  for (std::int64_t i = std::max<std::int64_t>(0, impl_->recorded - capacity); i < impl_->recorded; ++i)
    events.push_back(impl_->ring[static_cast<std::size_t>(i % capacity)]);
  return events;
}

std::int64_t Timeline::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  return std::max<std::int64_t>(0, impl_->recorded - static_cast<std::int64_t>(impl_->ring.size()));
}

}  // namespace thinwire::watch
