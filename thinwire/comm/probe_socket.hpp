// File descriptors that close themselves, and the few socket calls that probes need. All are non-blocking and close on
// exec.
#pragma once

#include <sys/socket.h>

#include <string>
#include <utility>

namespace thinwire::comm {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Throws Error kInvalidArgument when `address` is no numeric IPv4 or IPv6 address.
SocketAddress socket_address(const std::string& address, int port);

struct Listening {
  Fd fd;
  int port = 0;
};
// A listening socket on a port that the kernel chooses. Throws Error kUnavailable with the kernel's reason.
Listening listen_on(const std::string& address);

struct Connecting {
  Fd fd;
  int error = 0;  // errno; EINPROGRESS while the kernel still tries
};
// Throws Error kUnavailable when no socket can be made (out of file descriptors).
Connecting start_connect(const SocketAddress& to);

// The result of a connection attempt whose socket has become writable: 0 or an errno. ECONNREFUSED for a socket that
// got connected to itself, which the kernel does on loopback when the port it aims at is free.
int connect_result(int fd);

}  // namespace thinwire::comm
