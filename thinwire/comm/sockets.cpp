#include "thinwire/comm/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace thinwire::comm {
namespace {

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

std::string address_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  if (address.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  return text;
}

std::optional<ConnectedSocket> connected(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  sockaddr_storage local{}, peer{};
  socklen_t local_size = sizeof local, peer_size = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return std::nullopt;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return std::nullopt;
  if (port_of(peer) == 0) return std::nullopt;
  return ConnectedSocket{descriptor, status.st_ino, port_of(local), port_of(peer), address_of(peer)};
}

}  // namespace

std::set<int> open_descriptors() {
  std::set<int> descriptors;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    descriptors.insert(std::atoi(entry.path().filename().c_str()));
  return descriptors;
}

std::vector<ConnectedSocket> connected_since(const std::set<int>& before) {
  std::vector<ConnectedSocket> sockets;
  for (const int descriptor : open_descriptors())
    if (!before.contains(descriptor))
      if (const auto socket = connected(descriptor)) sockets.push_back(*socket);
  return sockets;
}

void shutdown_sockets(const std::vector<ConnectedSocket>& sockets) noexcept {
  for (const ConnectedSocket& socket : sockets) {
    struct stat status {};
    if (fstat(socket.descriptor, &status) == 0 && status.st_ino == socket.inode && S_ISSOCK(status.st_mode))
      ::shutdown(socket.descriptor, SHUT_RDWR);
  }
}

void close_on_exec(const std::vector<ConnectedSocket>& sockets) noexcept {
  for (const ConnectedSocket& socket : sockets) {
    const int flags = fcntl(socket.descriptor, F_GETFD);
    if (flags >= 0) fcntl(socket.descriptor, F_SETFD, flags | FD_CLOEXEC);
  }
}

void limit_waits(const ConnectedSocket& socket, std::int64_t timeout_ms) {
  const timeval limit{.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
  setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace thinwire::comm
