// The few socket calls that probes need. All sockets are non-blocking and close on exec.
#pragma once

#include <sys/socket.h>

#include <string>

#include "thinwire/base/file_descriptor.hpp"

namespace thinwire::comm {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Throws Error kInvalidArgument when `address` is no numeric IPv4 or IPv6 address.
SocketAddress socket_address(const std::string& address, int port);

struct Listening {
  FileDescriptor fd;
  int port = 0;
};
// A listening socket on a port that the kernel chooses. Throws Error kUnavailable with the kernel's reason.
Listening listen_on(const std::string& address);

struct Connecting {
  FileDescriptor fd;
  int error = 0;  // errno; EINPROGRESS while the kernel still tries
};
// Throws Error kUnavailable when no socket can be made (out of file descriptors).
Connecting start_connect(const SocketAddress& to);

// The result of a connection attempt whose socket has become writable: 0 or an errno. ECONNREFUSED for a socket that
// got connected to itself, which the kernel does on loopback when the port it aims at is free.
int connect_result(int fd);

}  // namespace thinwire::comm
