#include "thinwire/comm/probe_listener.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "thinwire/base/clock.hpp"
#include "thinwire/comm/probe_wire.hpp"

namespace thinwire::comm {
namespace {

constexpr std::size_t kMaxConnections = 128;
constexpr double kConnectionLife_s = 1.0;

std::uint64_t draw_nonce() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) ^ device();
}

}  // namespace

ProbeListener::ProbeListener(const std::string& address, Handler handler)
    : listening_(listen_on(address)), nonce_(draw_nonce()), handler_(std::move(handler)) {}

void ProbeListener::serve(int wait_ms, int wake_fd) {
  std::vector<pollfd> wanted{{listening_.fd.get(), POLLIN, 0}};
  for (const Connection& connection : connections_)
    wanted.push_back({connection.fd.get(), static_cast<short>(connection.to_send.empty() ? POLLIN : POLLOUT), 0});
  if (wake_fd >= 0) wanted.push_back({wake_fd, POLLIN, 0});
  const bool ready = ::poll(wanted.data(), wanted.size(), wait_ms) > 0;
  const double now_s = monotonic_seconds();
  std::size_t at = 1;
  for (auto it = connections_.begin(); it != connections_.end(); ++at) {
    const bool keep = (!ready || wanted[at].revents == 0 || advance(*it)) && it->until_s > now_s;
    it = keep ? std::next(it) : connections_.erase(it);
  }
  if (ready && wanted[0].revents != 0) accept_all();
}

void ProbeListener::accept_all() {
  for (std::size_t taken = 0; taken < kMaxConnections; ++taken) {
    FileDescriptor fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno != EMFILE && errno != ENFILE) return;
      // Out of descriptors: the oldest connection gives way; without one, a short rest keeps poll from spinning.
      if (connections_.empty())
        ::poll(nullptr, 0, 10);
      else
        connections_.pop_front();
      return;
    }
    if (connections_.size() >= kMaxConnections) connections_.pop_front();
    connections_.push_back({std::move(fd), monotonic_seconds() + kConnectionLife_s, {}, {}, 0});
    if (!advance(connections_.back())) connections_.pop_back();
  }
}

bool ProbeListener::advance(Connection& connection) {
  if (connection.to_send.empty() && !receive_more(connection)) return false;
  return connection.to_send.empty() || send_more(connection);
}

bool ProbeListener::receive_more(Connection& connection) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::recv(connection.fd.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    connection.received.append(buffer, static_cast<std::size_t>(got));
    Request request;
    const Parsed parsed = parse_request(connection.received, nonce_, &request);
    if (parsed == Parsed::kForeign) return false;
    if (parsed == Parsed::kIncomplete) continue;
    connection.to_send = encode_answer(nonce_, handler_(request));
    return true;
  }
}

bool ProbeListener::send_more(Connection& connection) {
  const char* from = connection.to_send.data() + connection.sent;
  const ssize_t sent = ::send(connection.fd.get(), from, connection.to_send.size() - connection.sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection.sent += static_cast<std::size_t>(sent);
  return connection.sent < connection.to_send.size();
}

}  // namespace thinwire::comm
