#include "thinwire/comm/watchdog_line.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace thinwire::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kLeaveLimit{500};
constexpr std::int64_t kReadLimit_ms = 2'000;

}  // namespace

// Everything that the thread touches. `mutex` guards what follows it; it is never held during a call to the store.
struct StoreLine::Shared {
  OpenBulletin open;
  std::string own_key;
  std::vector<std::string> peer_keys;
  StoreLineSettings settings;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::function<std::string()> say;  // emptied when the owner leaves: it may refer to the owner
  bool leaving = false;
  bool ended = false;
  std::int64_t looks_wanted = 0;  // counts requests for a fresh look
  std::int64_t looks_done = 0;    // the newest request that a successful look has served
  std::vector<Value> seen;
};

namespace {

// The body of the thread. A template only because Shared is private to StoreLine.
template <typename Shared>
class Publisher {
 public:
  explicit Publisher(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void run() {
    while (wait_for_turn()) {
      try {
        turn();
      } catch (const std::exception&) {
        // Out of step from here on: a new connection, after a pause.
        bulletin_.reset();
        open_again_at_ = Clock::now() + Milliseconds(shared_->settings.reopen_after_ms);
      }
    }
    bulletin_.reset();
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
    shared_->changed.notify_all();
  }

 private:
  bool look_wanted() const { return shared_->looks_wanted > shared_->looks_done; }

  bool wait_for_turn() {
    std::unique_lock lock(shared_->mutex);
    const Clock::time_point next =
        std::max(published_at_ + Milliseconds(shared_->settings.interval_ms), open_again_at_);
    shared_->changed.wait_until(lock, next,
                                [&] { return shared_->leaving || (look_wanted() && Clock::now() >= open_again_at_); });
    return !shared_->leaving;
  }

  void turn() {
    published_at_ = Clock::now();
    if (bulletin_ == nullptr) bulletin_ = shared_->open();
    std::string value;
    std::int64_t look = 0;
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->leaving) return;
      value = shared_->say();
      look = shared_->looks_wanted;
      // With many ranks the looks grow with their square: one a second up to 64 ranks, fewer above.
      const auto pause = Milliseconds(std::max<std::size_t>(1'000, 16 * shared_->peer_keys.size()));
      if (!look_wanted() && Clock::now() < looked_at_ + pause) look = -1;
    }
    bulletin_->publish(shared_->own_key, value);
    if (look >= 0) take_look(look);
  }

  void take_look(std::int64_t look) {
    std::vector<StoreLine::Value> seen = bulletin_->read(shared_->peer_keys, kReadLimit_ms);
    looked_at_ = Clock::now();
    const std::lock_guard lock(shared_->mutex);
    shared_->seen = std::move(seen);
    shared_->looks_done = look;
    shared_->changed.notify_all();
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Bulletin> bulletin_;
  Clock::time_point published_at_{};
  Clock::time_point open_again_at_{};
  Clock::time_point looked_at_{};
};

}  // namespace

StoreLine::StoreLine(OpenBulletin open, std::string own_key, std::vector<std::string> peer_keys,
                     std::function<std::string()> say, const StoreLineSettings& settings)
    : shared_(std::make_shared<Shared>()) {
  shared_->open = std::move(open);
  shared_->own_key = std::move(own_key);
  shared_->peer_keys = std::move(peer_keys);
  shared_->settings = settings;
  shared_->say = std::move(say);
  shared_->seen.resize(shared_->peer_keys.size());
  std::thread([shared = shared_] { Publisher<Shared>(shared).run(); }).detach();
}

StoreLine::~StoreLine() {
  std::unique_lock lock(shared_->mutex);
  shared_->leaving = true;
  shared_->say = nullptr;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kLeaveLimit, [&] { return shared_->ended; });
}

std::int64_t StoreLine::request_look() {
  const std::lock_guard lock(shared_->mutex);
  shared_->changed.notify_all();
  return ++shared_->looks_wanted;
}

std::optional<std::vector<StoreLine::Value>> StoreLine::await_look(std::int64_t look, std::int64_t limit_ms) {
  std::unique_lock lock(shared_->mutex);
  const bool served =
      shared_->changed.wait_for(lock, Milliseconds(limit_ms), [&] { return shared_->looks_done >= look; });
  return served ? std::optional(shared_->seen) : std::nullopt;
}

std::vector<StoreLine::Value> StoreLine::last_read() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->seen;
}

}  // namespace thinwire::comm
