// The sockets of this process, found from outside: Gloo and the store do not tell which ones are theirs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace thinwire::comm {

// A connected stream socket. The inode tells it from a later one that got the same number.
struct ConnectedSocket {
  int descriptor;
  ino_t inode;
  int local_port;
  int peer_port;
  std::string peer_address;  // numeric, without the scope of IPv6
};

// Open descriptors of this process.
std::set<int> open_descriptors();

// Connected TCP sockets that are not in `before`. Listening sockets are never among them.
std::vector<ConnectedSocket> connected_since(const std::set<int>& before);

// shutdown(2) in both directions on those that still are what they were; who waits on them is freed at once.
void shutdown_sockets(const std::vector<ConnectedSocket>& sockets) noexcept;

// A program that a rank starts must not inherit them: while it lives they would stay open when the rank has died, and
// its peers would wait for it. A fork() without exec keeps them.
void close_on_exec(const std::vector<ConnectedSocket>& sockets) noexcept;

// Bounds every later send and receive on it.
void limit_waits(const ConnectedSocket& socket, std::int64_t timeout_ms);

}  // namespace thinwire::comm
