#include "thinwire/comm/probe_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "thinwire/base/error.hpp"

namespace thinwire::comm {
namespace {

[[noreturn]] void fail_socket(const std::string& what, int error) {
  const char* hint = error == EMFILE || error == ENFILE ? "raising the limit of open files (ulimit -n)" : "";
  fail(ErrorCode::kUnavailable,
       {.place = "comm::probe", .what = what, .got = std::strerror(error), .want = "a socket", .hint = hint});
}

FileDescriptor tcp_socket(int family) {
  FileDescriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) fail_socket("cannot open a socket", errno);
  return fd;
}

int port_of(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

}  // namespace

SocketAddress socket_address(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (port < 0 || port > 65535 || ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    fail(ErrorCode::kInvalidArgument, {.place = "comm::probe",
                                       .what = "address of a rank",
                                       .got = "'" + address + "' port " + std::to_string(port),
                                       .want = "a numeric IPv4 or IPv6 address",
                                       .hint = ""});
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return result;
}

Listening listen_on(const std::string& address) {
  SocketAddress at = socket_address(address, 0);
  Listening result{tcp_socket(at.storage.ss_family), 0};
  const int on = 1;
  ::setsockopt(result.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(result.fd.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.length) != 0 ||
      ::listen(result.fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(result.fd.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.length) != 0)
    fail_socket("cannot listen on " + address, errno);
  result.port = port_of(at.storage);
  return result;
}

Connecting start_connect(const SocketAddress& to) {
  Connecting result{tcp_socket(to.storage.ss_family), 0};
  if (::connect(result.fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0) result.error = errno;
  return result;
}

int connect_result(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  SocketAddress ours, theirs;
  ours.length = theirs.length = sizeof(sockaddr_storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&ours.storage), &ours.length) != 0) return errno;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs.storage), &theirs.length) != 0) return errno;
  const bool itself = ours.length == theirs.length && std::memcmp(&ours.storage, &theirs.storage, ours.length) == 0;
  return itself ? ECONNREFUSED : 0;
}

}  // namespace thinwire::comm
