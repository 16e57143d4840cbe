#include "thinwire/comm/probe.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "thinwire/base/clock.hpp"
#include "thinwire/comm/probe_socket.hpp"
#include "thinwire/comm/probe_wire.hpp"

namespace thinwire::comm {
namespace {

bool is_refusal(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
}

bool is_no_route(int error) {
  return error == ENETUNREACH || error == ENETDOWN || error == EADDRNOTAVAIL || error == EINVAL;
}

// One question in flight.
class Asking {
 public:
  Asking(const Endpoint& endpoint, const Request& request)
      : nonce_(endpoint.nonce), to_send_(encode_request(endpoint.nonce, request)) {
    Connecting connecting = start_connect(socket_address(endpoint.address, endpoint.port));
    fd_ = std::move(connecting.fd);
    answer_.detail = "no answer to connect";
    if (connecting.error != 0 && connecting.error != EINPROGRESS) end_with(connecting.error);
  }

  bool done() const { return !fd_.valid(); }
  pollfd wanted() const { return {fd_.get(), static_cast<short>(sent_ < to_send_.size() ? POLLOUT : POLLIN), 0}; }
  Answer take() { return std::move(answer_); }

  void advance() {
    if (!connected_) {
      if (const int error = connect_result(fd_.get()); error != 0) return end_with(error);
      connected_ = true;
      answer_.reach = Reach::kSilent;
      answer_.detail = "accepts connections but does not answer";
    }
    if (sent_ < to_send_.size()) send_more();
    if (!done() && sent_ == to_send_.size()) receive_more();
  }

 private:
  void send_more() {
    const ssize_t sent = ::send(fd_.get(), to_send_.data() + sent_, to_send_.size() - sent_, MSG_NOSIGNAL);
    if (sent >= 0)
      sent_ += static_cast<std::size_t>(sent);
    else if (errno != EAGAIN && errno != EINTR)
      end_with(errno);
  }

  void receive_more() {
    char buffer[4096];
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) return end_with(errno);
    received_.append(buffer, static_cast<std::size_t>(got));
    const Parsed parsed = parse_answer(received_, nonce_, &answer_.text);
    if (parsed == Parsed::kComplete) return end_as(Reach::kAnswered, "");
    if (got == 0 && received_.empty()) return end_as(Reach::kRefused, "connection refused");
    if (got == 0 || parsed == Parsed::kForeign) end_as(Reach::kRefused, "another program answers on its port");
  }

  void end_with(int error) {
    answer_.no_route = is_no_route(error);
    // A reset is a refusal that came while the process was ending: one word for both, so that ranks agree.
    if (is_refusal(error)) return end_as(Reach::kRefused, "connection refused");
    end_as(Reach::kUnreachable, std::strerror(error));
  }

  void end_as(Reach reach, std::string detail) {
    answer_.reach = reach;
    answer_.detail = std::move(detail);
    fd_.close();
  }

  std::uint64_t nonce_;
  std::string to_send_;
  std::size_t sent_ = 0;
  std::string received_;
  bool connected_ = false;
  FileDescriptor fd_;
  Answer answer_;
};

void advance_all(std::vector<Asking>& askings, const Deadline& deadline) {
  while (true) {
    std::vector<pollfd> wanted;
    std::vector<Asking*> open;
    for (Asking& asking : askings) {
      if (asking.done()) continue;
      wanted.push_back(asking.wanted());
      open.push_back(&asking);
    }
    const double left_s = deadline.remaining_s();
    if (open.empty() || left_s <= 0) return;
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(left_s * 1e3) + 1) <= 0) continue;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (wanted[i].revents != 0) open[i]->advance();
  }
}

}  // namespace

std::vector<Answer> ask(std::span<const Endpoint> endpoints, const Request& request, std::int64_t limit_ms) {
  const Deadline deadline = Deadline::in_ms(limit_ms);
  std::vector<Asking> askings;
  askings.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) askings.emplace_back(endpoint, request);
  advance_all(askings, deadline);
  std::vector<Answer> answers;
  for (Asking& asking : askings) answers.push_back(asking.take());
  return answers;
}

bool interface_is_up(const std::string& address) {
  const SocketAddress ours = socket_address(address, 0);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return true;
  bool up = false;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != ours.storage.ss_family) continue;
    const bool v6 = ours.storage.ss_family == AF_INET6;
    const auto* theirs = reinterpret_cast<const char*>(one->ifa_addr);
    const auto* mine = reinterpret_cast<const char*>(&ours.storage);
    const std::size_t at = v6 ? offsetof(sockaddr_in6, sin6_addr) : offsetof(sockaddr_in, sin_addr);
    const std::size_t bytes = v6 ? sizeof(in6_addr) : sizeof(in_addr);
    if (std::memcmp(theirs + at, mine + at, bytes) != 0) continue;
    up = up || ((one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0);
  }
  ::freeifaddrs(all);
  return up;
}

}  // namespace thinwire::comm
