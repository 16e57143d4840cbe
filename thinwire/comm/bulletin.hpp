// A board of keys and values that all ranks can read and write: where the watchdog publishes what its rank is doing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::comm {

// One connection to the board. Calls of several threads are serialised, so that each thread that must not wait for
// another has a Bulletin of its own. After an Error the connection is out of step and every later call throws.
class Bulletin {
 public:
  virtual ~Bulletin() = default;

  // Overwrites. Not acknowledged: a board that has died may swallow one value without an Error.
  virtual void publish(const std::string& key, const std::string& value) = 0;

  // One look, no waiting for keys: nullopt where nothing was published. Throws Error kTimeout when the board does not
  // answer within about `timeout_ms` (stopped or cut off), kPeerFailure when it is gone.
  virtual std::vector<std::optional<std::string>> read(const std::vector<std::string>& keys,
                                                       std::int64_t timeout_ms) = 0;
};

// Opens a connection of its own to the TCP store at host:port; every key gets `prefix` in front. Sends and replies are
// bounded by 2 s, the opening by `timeout_ms`, also when the store's host is stopped. Throws as read does.
std::unique_ptr<Bulletin> make_store_bulletin(const std::string& host, int port, const std::string& prefix,
                                              std::int64_t timeout_ms = 5'000);

// A second connection to where `store` leads, bounded in the same way; the opening itself may hang.
class Store;
std::unique_ptr<Bulletin> make_cloned_bulletin(Store& store, const std::string& prefix);

}  // namespace thinwire::comm
