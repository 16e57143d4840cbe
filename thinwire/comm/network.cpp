#include "thinwire/comm/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "thinwire/base/error.hpp"

namespace thinwire::comm {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList look_up(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

// 0 or an error number.
int try_connect(const addrinfo& address, std::int64_t limit_ms) {
  const Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (poll(&waiting, 1, static_cast<int>(limit_ms)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return *name == '\0' ? "unnamed host" : name;
}

std::string host_identity() {
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  struct stat status {};
  if (boot.empty() || stat("/proc/self/ns/net", &status) != 0) return host_name();
  return boot + "/" + std::to_string(status.st_ino);
}

std::vector<std::string> resolve(const std::string& host) {
  const AddressList list = look_up(host, 0);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next)
    addresses.push_back(numeric(entry->ai_addr, entry->ai_addrlen));
  return addresses;
}

bool is_loopback(const std::string& numeric_address) {
  in_addr four{};
  if (inet_pton(AF_INET, numeric_address.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, numeric_address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::optional<std::string> address_towards(const std::string& host) {
  const AddressList list = look_up(host, 9);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const Descriptor socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0 || connect(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
      return numeric(reinterpret_cast<sockaddr*>(&own), size);
  }
  return std::nullopt;
}

std::string address_of_interface(const std::string& name) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) first = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::set<std::string> known;
  std::string four, six;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    known.insert(entry->ifa_name);
    if (name != entry->ifa_name || entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET && four.empty()) four = numeric(entry->ifa_addr, sizeof(sockaddr_in));
    if (entry->ifa_addr->sa_family == AF_INET6 && six.empty()) six = numeric(entry->ifa_addr, sizeof(sockaddr_in6));
  }
  if (!four.empty()) return four;
  if (!six.empty()) return six;
  std::string names;
  for (const auto& each : known) names += (names.empty() ? "" : ", ") + each;
  fail(ErrorCode::kNotFound, {.place = "comm::address_of_interface",
                              .what = known.contains(name) ? "network interface has no address" : "network interface",
                              .got = "\"" + name + "\"",
                              .want = "one of " + names,
                              .hint = "GLOO_SOCKET_IFNAME or InitSettings::interface with one of these"});
}

std::string why_unreachable(const std::string& host, int port, std::int64_t limit_ms) {
  const AddressList list = look_up(host, port);
  if (!list) return "the name \"" + host + "\" cannot be resolved";
  std::string reasons;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const int error = try_connect(*entry, limit_ms);
    if (error == 0) return "";
    reasons += (reasons.empty() ? "" : "; ") + numeric(entry->ai_addr, entry->ai_addrlen) + ": " + std::strerror(error);
  }
  return reasons;
}

}  // namespace thinwire::comm
