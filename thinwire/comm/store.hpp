// The store where ranks meet: keys and values on one host, reached over TCP (torch's TCPStore).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace c10d {
class Store;
}

namespace thinwire::comm {

// One connection. No call waits for a key. Throws Error kTimeout when the host does not answer (stopped, cut off) and
// kPeerFailure when it is gone; after an Error the connection is out of step and must be dropped. Thread safe.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual bool contains(const std::vector<std::string>& keys) = 0;  // all of them
  virtual std::vector<std::optional<std::string>> read(const std::vector<std::string>& keys) = 0;
  // Sets `key` to `value` if it is absent; returns what it holds then.
  virtual std::string set_if_absent(const std::string& key, const std::string& value) = 0;

  // Bounds every later send and reply.
  virtual void limit_waits(std::int64_t timeout_ms) = 0;

  // For forming groups on it.
  virtual c10d::Store& native() = 0;
};

struct StoreAddress {
  std::string host;
  int port = 0;
};

// Runs the store in this process for as long as the result lives; a store that this process already hosts on that port
// is shared. Throws Error kMismatch when the port is in use.
std::shared_ptr<void> host_store(int port);

// Opens a connection. Replies are bounded by `reply_timeout_ms`, the opening by `open_timeout_ms`, also against a
// stopped host or a port that is held by something silent. Throws Error kTimeout (nothing answers), kMismatch
// (something else does), kPeerFailure (refused or closed).
std::unique_ptr<Store> connect_store(const StoreAddress& address, std::int64_t open_timeout_ms,
                                     std::int64_t reply_timeout_ms);

// A second connection to the same place. May hang when its host is stopped.
std::unique_ptr<Store> clone_store(Store& store, std::int64_t reply_timeout_ms);

// A store that somebody else made, of which the result becomes an owner; waits are bounded as its maker chose.
std::unique_ptr<Store> wrap_store(c10d::Store& store);

}  // namespace thinwire::comm
