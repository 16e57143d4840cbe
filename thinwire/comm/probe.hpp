// Asking a rank directly what it is doing: a few bytes over TCP, answered at once by that rank's watchdog thread, no
// matter what its other threads wait for. Plain sockets: no store, no process group, no Torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thinwire/comm/progress.hpp"

namespace thinwire::comm {

// Whether an operation of a rank has failed, and how its backend saw it; or its program ends by an exception.
enum class Failed : int { kNo = 0, kClosed = 1, kTimeout = 2, kException = 3 };

// What a rank says about itself.
struct RankState {
  int rank = -1;
  std::int64_t pid = 0;
  std::string host;
  std::int64_t beat = 0;  // counts up for as long as the process runs
  std::int64_t step = -1;
  int bucket = -1;
  int hop = 0;
  Phase phase = Phase::kComputing;
  std::string operation;  // "hop 1", "barrier": of the operation that failed; empty before
  Failed failed = Failed::kNo;
  std::int64_t gap_ms = 0;  // longest recent pause between two beats: how long the process was stopped
};

// Where a rank answers. `nonce` is drawn per listener, so that a port taken over by somebody else is noticed.
struct Endpoint {
  int rank = -1;
  std::string address;  // numeric, IPv4 or IPv6
  int port = 0;
  std::uint64_t nonce = 0;
  std::int64_t pid = 0;
  std::string host;
};

// One line of printable ASCII without line breaks; what does not parse gives nullopt. What a name may not hold becomes
// '_'; an operation gets its blanks back.
std::string to_line(const RankState& state);
std::string to_line(const Endpoint& endpoint);
std::optional<RankState> parse_rank_state(std::string_view line);
std::optional<Endpoint> parse_endpoint(std::string_view line);

enum class RequestKind : int {
  kState = 0,   // answer: to_line(RankState)
  kSettle = 1,  // text: a diagnosis; the first one a rank hears of is the one it keeps. Answer: the one it keeps
  kLeave = 2,   // the sender ends, no operation of its own has failed; text: its last to_line(RankState), kException
                // where an exception ends it. Answer: nothing
};

struct Request {
  RequestKind kind = RequestKind::kState;
  int from = -1;     // rank that asks
  std::string text;  // at most kMaxProbeText bytes
};

inline constexpr std::size_t kMaxProbeText = 16 * 1024;

enum class Reach : int {
  kAnswered,
  kRefused,      // nobody listens there, or somebody else does: that process has ended
  kSilent,       // the kernel accepted, the process said nothing within the limit
  kUnreachable,  // no answer from that host's kernel, or no route to it
};

struct Answer {
  Reach reach = Reach::kUnreachable;
  std::string detail;     // why, in words: "connection refused"
  std::string text;       // kAnswered only
  bool no_route = false;  // kUnreachable only: our own kernel knows no way, which points at our own interface
};

// Asks all of them at the same time and returns after `limit_ms` at the latest, one answer per endpoint. Never throws
// for what peers do; Error kUnavailable when this process is out of file descriptors.
std::vector<Answer> ask(std::span<const Endpoint> endpoints, const Request& request, std::int64_t limit_ms);

// True when an interface with this numeric address exists, is up and has a carrier.
bool interface_is_up(const std::string& address);

}  // namespace thinwire::comm
