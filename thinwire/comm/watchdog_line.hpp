// A line to the store that can hang without anybody waiting for it: one thread with one connection of its own.
//
// A TCP store whose host is stopped or cut off keeps every call that expects a reply, and even the opening of a new
// connection, until the host comes back. So all of that happens on this thread, callers wait for it with a limit, and
// a thread that hangs is left behind: it owns everything that it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/comm/bulletin.hpp"

namespace thinwire::comm {

// Opens a connection that nobody else uses. Called on the line's thread, again after a failure.
using OpenBulletin = std::function<std::unique_ptr<Bulletin>()>;

struct StoreLineSettings {
  std::int64_t interval_ms = 250;        // between two publications
  std::int64_t reopen_after_ms = 1'000;  // pause after a failure before a new connection is tried
};

class StoreLine {
 public:
  using Value = std::optional<std::string>;

  // Publishes what `say` returns under `own_key` at every interval and reads `peer_keys` now and then (last_read).
  StoreLine(OpenBulletin open, std::string own_key, std::vector<std::string> peer_keys,
            std::function<std::string()> say, const StoreLineSettings& settings = {});
  // Returns within 0.5 s. A thread that hangs in the store at that time stays behind until its call returns or the
  // process ends; it then touches nothing but what it owns.
  ~StoreLine();
  StoreLine(const StoreLine&) = delete;
  StoreLine& operator=(const StoreLine&) = delete;

  // Asks for a fresh look at the peers' keys; never blocks. await_look waits for the look with this number: nullopt
  // when the store has not answered `limit_ms` from now. Any thread.
  std::int64_t request_look();
  std::optional<std::vector<Value>> await_look(std::int64_t look, std::int64_t limit_ms);

  // The newest values that any look has brought. Any thread, never blocks.
  std::vector<Value> last_read() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace thinwire::comm
