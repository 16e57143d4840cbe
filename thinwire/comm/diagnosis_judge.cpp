#include "thinwire/comm/diagnosis_judge.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/comm/diagnosis_observe.hpp"

namespace thinwire::comm {
namespace {

constexpr std::string_view kPlace = "[comm::watchdog] ";
constexpr std::string_view kOwnPart = "; [on rank ";

bool has_timed_out(const std::string& backend_text) {
  for (const char* sign : {"imed out", "imeout"})
    if (backend_text.find(sign) != std::string::npos) return true;
  return false;
}

// The first line in ASCII, without the place in the backend's source and the advice that follows.
std::string gist(const std::string& text) {
  std::string line = text.substr(0, std::min(text.find('\n'), text.size()));
  line = line.substr(0, std::min(line.find(" This is typically"), line.size()));
  const std::size_t place_end = line.find("] ");
  if (line.rfind("[/", 0) == 0 && place_end != std::string::npos) line.erase(0, place_end + 2);
  std::erase_if(line, [](char c) { return c < ' ' || c > '~'; });
  return line;
}

// A settled diagnosis carries its code, since those who adopt it have no verdict of their own.
std::string with_code(ErrorCode code, const std::string& text) {
  return (code == ErrorCode::kTimeout ? "timeout " : "peer ") + text;
}

std::pair<ErrorCode, std::string> split_code(const std::string& settled) {
  const std::size_t blank = std::min(settled.find(' '), settled.size() - 1);
  const ErrorCode code = settled.substr(0, blank) == "timeout" ? ErrorCode::kTimeout : ErrorCode::kPeerFailure;
  return {code, settled.substr(blank + 1)};
}

}  // namespace

struct Judge::Impl {
  Watchdog& watchdog;
  std::function<void()> free_others;
  JudgeSettings settings;
  std::mutex mutex;
  std::optional<Error> error;  // guarded by mutex

  Error diagnose(const FailedOperation& operation, const std::string& backend_text) {
    watchdog.mark_failed(operation, has_timed_out(backend_text) ? Failed::kTimeout : Failed::kClosed);
    free_others();
    std::optional<std::string> settled = watchdog.settled();
    if (!settled) settled = investigate();
    const auto [code, text] = split_code(*settled);
    return Error(code, std::string(kPlace) + text + own_part(operation, backend_text));
  }

  std::string investigate() {
    Observations seen = observe(watchdog, settings);
    Verdict verdict = decide(seen);
    const Deadline doubt = Deadline::in_ms(settings.limits.doubt_ms);
    while (verdict.verb == Verb::kNobody && seen.self.failed == Failed::kClosed && !doubt.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (const auto settled = watchdog.settled()) return *settled;
      look_again(watchdog, settings, &seen);
      verdict = decide(seen);
    }
    // What a peer has left here while nobody answered: this rank may have been stopped, or be the last one.
    if (seen.self.gap_ms > seen.timeout_ms / 2) watchdog.catch_up();
    if (const auto settled = watchdog.settled()) return *settled;
    const ErrorCode code = verdict.verb == Verb::kNobody ? ErrorCode::kTimeout : ErrorCode::kPeerFailure;
    const std::string text = with_code(code, describe(verdict, seen));
    if (verdict.verb != Verb::kCutOff) return settle(verdict, seen, text);
    watchdog.abandon_store();
    return text;
  }

  // Offers `text` to the lowest healthy rank, keeps what that rank keeps, and leaves it with all others.
  std::string settle(const Verdict& verdict, const Observations& seen, const std::string& text) {
    std::vector<Endpoint> electors = healthy_below_self(verdict, seen);
    std::string kept;
    for (const Endpoint& elector : electors) {
      kept = offer({elector}, text, settings.limits.settle_ms).front();
      if (!kept.empty()) break;
    }
    kept = watchdog.settle(kept.empty() ? text : kept);
    offer(reachable(seen), kept, settings.limits.leave_ms);
    return kept;
  }

  static std::vector<Endpoint> healthy_below_self(const Verdict& verdict, const Observations& seen) {
    std::vector<Endpoint> electors;
    for (const PeerObservation& peer : seen.peers) {
      const int rank = peer.peer.rank;
      const bool blamed = std::count(verdict.ranks.begin(), verdict.ranks.end(), rank) != 0;
      if (peer.reach == Reach::kAnswered && !blamed && rank < seen.self.rank) electors.push_back(peer.peer);
    }
    std::sort(electors.begin(), electors.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    return electors;
  }

  // A stopped process finds what its kernel has accepted for it when it runs again.
  static std::vector<Endpoint> reachable(const Observations& seen) {
    std::vector<Endpoint> peers;
    for (const PeerObservation& peer : seen.peers)
      if (peer.reach == Reach::kAnswered || peer.reach == Reach::kSilent) peers.push_back(peer.peer);
    return peers;
  }

  // What each of them keeps; empty where it does not answer.
  std::vector<std::string> offer(const std::vector<Endpoint>& peers, const std::string& text, std::int64_t limit_ms) {
    std::vector<std::string> kept;
    for (Answer& answer : ask(peers, {RequestKind::kSettle, watchdog.rank(), text}, limit_ms))
      kept.push_back(answer.reach == Reach::kAnswered ? std::move(answer.text) : "");
    return kept;
  }

  std::string own_part(const FailedOperation& operation, const std::string& backend_text) const {
    const RankState self = watchdog.state();
    std::string text = std::string(kOwnPart) + std::to_string(self.rank) + ": " + position(self);
    if (self.operation != operation.what) text += ", then " + operation.what;
    if (self.gap_ms > watchdog.timeout_ms() / 2)
      text += "; this process itself was stopped for " + std::to_string(self.gap_ms / 1000) + " s";
    return text + "] [" + settings.backend + ": " + gist(backend_text) + "]";
  }
};

Judge::Judge(Watchdog& watchdog, std::function<void()> free_others, const JudgeSettings& settings)
    : impl_(new Impl{watchdog, std::move(free_others), settings, {}, {}}) {}

Judge::~Judge() = default;

Error Judge::judge(const FailedOperation& operation, const std::string& backend_text) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->error) return *impl_->error;
  try {
    impl_->error = impl_->diagnose(operation, backend_text);
  } catch (const std::exception& failure) {
    impl_->error =
        Error(ErrorCode::kPeerFailure, std::string(kPlace) + operation.what +
                                           " failed and the other ranks could not be asked: " + failure.what() + " [" +
                                           impl_->settings.backend + ": " + gist(backend_text) + "]");
  }
  return *impl_->error;
}

std::string common_part(const std::string& message) {
  return message.substr(0, std::min(message.find(kOwnPart), message.size()));
}

}  // namespace thinwire::comm
