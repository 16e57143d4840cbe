// The answering side of probes: many connections, one thread that never blocks on any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "thinwire/comm/probe.hpp"
#include "thinwire/comm/probe_socket.hpp"

namespace thinwire::comm {

// Not thread safe: one thread calls serve. Garbage, half requests and floods cost a connection at most: bytes are
// limited, a connection lives one second, and the oldest one gives way when there are too many.
class ProbeListener {
 public:
  using Handler = std::function<std::string(const Request&)>;  // returns the answer's text; must not block or throw

  // Listens on `address`, on a port that the kernel chooses. Throws Error kUnavailable, kInvalidArgument.
  ProbeListener(const std::string& address, Handler handler);

  int port() const { return listening_.port; }
  std::uint64_t nonce() const { return nonce_; }

  // Answers what has arrived; waits up to `wait_ms` for something to arrive, or until `wake_fd` is readable.
  void serve(int wait_ms, int wake_fd = -1);

 private:
  struct Connection {
    FileDescriptor fd;
    double until_s;
    std::string received;
    std::string to_send;
    std::size_t sent = 0;
  };
  void accept_all();
  bool advance(Connection& connection);  // false: done with it
  bool receive_more(Connection& connection);
  bool send_more(Connection& connection);

  Listening listening_;
  std::uint64_t nonce_;
  Handler handler_;
  std::list<Connection> connections_;  // oldest first
};

}  // namespace thinwire::comm
