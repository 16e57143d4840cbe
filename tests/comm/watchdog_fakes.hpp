// A board in memory that can be told to hang or to fail, and ranks of one process that watch each other.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/bulletin.hpp"
#include "thinwire/comm/watchdog.hpp"

namespace thinwire::comm {

// Shared by all connections; outlives them, since an abandoned thread may still hold one.
class Board {
 public:
  enum class Mood { kWell, kHanging, kFailing };

  void set_mood(Mood mood) {
    const std::lock_guard lock(mutex_);
    mood_ = mood;
    changed_.notify_all();
  }
  std::optional<std::string> look(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  int opened() {
    const std::lock_guard lock(mutex_);
    return opened_;
  }
  void opens() {
    visit([&] { ++opened_; });
  }
  void put(const std::string& key, const std::string& value) {
    visit([&] { values_[key] = value; });
  }
  template <typename Act>
  void visit(Act act) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return mood_ != Mood::kHanging; });
    if (mood_ == Mood::kFailing) throw Error(ErrorCode::kPeerFailure, "[test] the board is gone");
    act();
  }
  std::map<std::string, std::string>& values() { return values_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Mood mood_ = Mood::kWell;
  int opened_ = 0;
  std::map<std::string, std::string> values_;
};

class BoardBulletin : public Bulletin {
 public:
  explicit BoardBulletin(std::shared_ptr<Board> board) : board_(std::move(board)) { board_->opens(); }
  void publish(const std::string& key, const std::string& value) override { board_->put(key, value); }
  std::vector<std::optional<std::string>> read(const std::vector<std::string>& keys, std::int64_t) override {
    std::vector<std::optional<std::string>> found;
    board_->visit([&] {
      for (const std::string& key : keys) {
        const auto at = board_->values().find(key);
        found.push_back(at == board_->values().end() ? std::nullopt : std::optional(at->second));
      }
    });
    return found;
  }

 private:
  std::shared_ptr<Board> board_;
};

inline OpenBulletin open_on(const std::shared_ptr<Board>& board) {
  return [board] { return std::make_unique<BoardBulletin>(board); };
}

// n watchdogs on loopback that have met.
class WatchedRanks {
 public:
  explicit WatchedRanks(int size, std::shared_ptr<Board> board = nullptr, std::int64_t timeout_ms = 60'000)
      : progress(size) {
    std::vector<std::string> endpoints;
    for (int rank = 0; rank < size; ++rank) {
      const WatchdogSettings settings{rank, "host" + std::to_string(rank), "127.0.0.1", timeout_ms};
      watchdogs.push_back(std::make_unique<Watchdog>(settings, progress[rank]));
      endpoints.push_back(watchdogs.back()->endpoint());
    }
    for (auto& watchdog : watchdogs) watchdog->meet(endpoints, board ? open_on(board) : OpenBulletin());
  }
  Watchdog& operator[](int rank) { return *watchdogs[rank]; }

  std::vector<Progress> progress;  // outlives the watchdogs
  std::vector<std::unique_ptr<Watchdog>> watchdogs;
};

}  // namespace thinwire::comm
