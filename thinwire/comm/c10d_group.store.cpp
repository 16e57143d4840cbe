// The store over torch's TCPStore, and the one thing that it does not do itself: keep its deadlines.
#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/sockets.hpp"
#include "thinwire/comm/store.hpp"

namespace thinwire::comm {
namespace {

using Native = c10::intrusive_ptr<c10d::Store>;

std::vector<std::uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}
std::string text(const std::vector<std::uint8_t>& value) {
  return {value.begin(), value.end()};
}

bool mentions(const std::string& message, const char* part) {
  return message.find(part) != std::string::npos;
}

[[noreturn]] void fail_store(const char* call, const std::string& key, const std::string& message) {
  const bool late = mentions(message, "Timeout") || mentions(message, "timeout") || mentions(message, "timed out");
  fail(late ? ErrorCode::kTimeout : ErrorCode::kPeerFailure,
       {.place = "comm::Store",
        .what = std::string(call) + " of \"" + key + "\": the store " + (late ? "does not answer" : "has gone"),
        .got = message.substr(0, message.find('\n')),
        .want = "",
        .hint = ""});
}

class NativeStore final : public Store {
 public:
  NativeStore(Native store, std::vector<ConnectedSocket> sockets)
      : store_(std::move(store)), sockets_(std::move(sockets)) {}

  void set(const std::string& key, const std::string& value) override {
    guarded("set", key, [&] { store_->set(key, bytes(value)); });
  }

  bool contains(const std::vector<std::string>& keys) override {
    bool all = false;
    guarded("contains", keys.front(), [&] { all = store_->check(keys); });
    return all;
  }

  std::vector<std::optional<std::string>> read(const std::vector<std::string>& keys) override {
    std::vector<std::optional<std::string>> values(keys.size());
    if (keys.empty()) return values;
    guarded("read", keys.front(), [&] {
      if (store_->check(keys)) return read_all(keys, values);
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (store_->check({keys[i]})) values[i] = text(store_->get(keys[i]));
    });
    return values;
  }

  std::string set_if_absent(const std::string& key, const std::string& value) override {
    std::string held;
    guarded("set_if_absent", key, [&] { held = text(store_->compareSet(key, {}, bytes(value))); });
    return held;
  }

  void limit_waits(std::int64_t timeout_ms) override {
    for (const ConnectedSocket& socket : sockets_) comm::limit_waits(socket, timeout_ms);
  }

  c10d::Store& native() override { return *store_; }

 private:
  void read_all(const std::vector<std::string>& keys, std::vector<std::optional<std::string>>& values) {
    if (!store_->hasExtendedApi()) {
      for (std::size_t i = 0; i < keys.size(); ++i) values[i] = text(store_->get(keys[i]));
      return;
    }
    const auto found = store_->multiGet(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = text(found[i]);
  }

  template <typename Call>
  void guarded(const char* name, const std::string& key, Call call) {
    std::string failure;
    try {
      return call();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    fail_store(name, key, failure);
  }

  Native store_;
  std::vector<ConnectedSocket> sockets_;
};

std::string describe(const StoreAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

[[noreturn]] void fail_to_open(const StoreAddress& address, const std::string& message) {
  const bool foreign = mentions(message, "Ping failed") || mentions(message, "invalid value returned");
  const bool late = mentions(message, "timed out") || mentions(message, "Timeout");
  const ErrorCode code = foreign ? ErrorCode::kMismatch : late ? ErrorCode::kTimeout : ErrorCode::kPeerFailure;
  const std::string what = foreign ? "something that is not the job's store answers at "
                           : late  ? "no answer of a store at "
                                   : "no store at ";
  fail(code, {.place = "comm::connect_store",
              .what = what + describe(address),
              .got = message.substr(0, message.find('\n')),
              .want = "",
              .hint = "another MASTER_PORT, or check that rank 0 runs on MASTER_ADDR"});
}

std::vector<ConnectedSocket> connections_to(int port, const std::set<int>& before) {
  std::vector<ConnectedSocket> sockets = connected_since(before);
  std::erase_if(sockets, [port](const ConnectedSocket& socket) { return socket.peer_port != port; });
  return sockets;
}

Native open_native(const StoreAddress& address, std::int64_t timeout_ms) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(address.port);
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

// The constructor hangs without limit on a port that accepts and says nothing. Closing its socket from here ends it; if
// that does not either, its thread is left behind.
Native open_bounded(const StoreAddress& address, std::int64_t timeout_ms, const std::set<int>& before) {
  std::promise<Native> promise;
  std::future<Native> opened = promise.get_future();
  std::thread opener([address, timeout_ms, promise = std::move(promise)]() mutable {
    try {
      promise.set_value(open_native(address, timeout_ms));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  });
  bool silent = false;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto limit = std::chrono::milliseconds(attempt == 0 ? timeout_ms : 100);
    if (opened.wait_for(limit) == std::future_status::ready) break;
    silent = true;
    shutdown_sockets(connections_to(address.port, before));
  }
  if (opened.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    opener.detach();
    fail_to_open(address, "timed out: connected, then silence for " + std::to_string(timeout_ms) + " ms");
  }
  opener.join();
  std::string failure;
  try {
    Native store = opened.get();
    if (!silent) return store;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  fail_to_open(address,
               silent ? "timed out: connected, then silence for " + std::to_string(timeout_ms) + " ms" : failure);
}

}  // namespace

std::shared_ptr<void> host_store(int port) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<void>> hosted;
  const std::lock_guard lock(mutex);
  if (auto running = hosted[port].lock()) return running;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(10);
  std::string failure;
  try {
    Native store = c10::make_intrusive<c10d::TCPStore>("localhost", options);
    const auto shared = std::make_shared<Native>(std::move(store));
    hosted[port] = shared;
    return shared;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  fail(ErrorCode::kMismatch, {.place = "comm::host_store",
                              .what = "rank 0 cannot host the store on port " + std::to_string(port) +
                                      (mentions(failure, "EADDRINUSE") ? ", which is in use" : ""),
                              .got = failure.substr(0, failure.find('\n')),
                              .want = "",
                              .hint = "another MASTER_PORT, or end the other job that uses it"});
}

std::unique_ptr<Store> connect_store(const StoreAddress& address, std::int64_t open_timeout_ms,
                                     std::int64_t reply_timeout_ms) {
  const std::set<int> before = open_descriptors();
  Native native = open_bounded(address, open_timeout_ms, before);
  auto store = std::make_unique<NativeStore>(std::move(native), connections_to(address.port, before));
  store->limit_waits(reply_timeout_ms);
  return store;
}

std::unique_ptr<Store> clone_store(Store& store, std::int64_t reply_timeout_ms) {
  const std::set<int> before = open_descriptors();
  Native native = store.native().clone();
  auto clone = std::make_unique<NativeStore>(std::move(native), connected_since(before));
  clone->limit_waits(reply_timeout_ms);
  return clone;
}

std::unique_ptr<Store> wrap_store(c10d::Store& store) {
  return std::make_unique<NativeStore>(Native::unsafe_reclaim_from_nonowning(&store), std::vector<ConnectedSocket>{});
}

}  // namespace thinwire::comm
