#include <algorithm>
#include <map>

#include "thinwire/comm/diagnosis.hpp"

namespace thinwire::comm {
namespace {

const PeerObservation* find(const Observations& seen, int rank) {
  for (const PeerObservation& peer : seen.peers)
    if (peer.peer.rank == rank) return &peer;
  return nullptr;
}

std::string seconds(std::int64_t ms) {
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
}

std::string name(int rank, const std::string& host, std::int64_t pid) {
  return "rank " + std::to_string(rank) + " (host " + host + ", pid " + std::to_string(pid) + ")";
}

std::string name(const Observations& seen, int rank) {
  if (const PeerObservation* peer = find(seen, rank)) return name(rank, peer->peer.host, peer->peer.pid);
  return name(rank, seen.self.host, seen.self.pid);
}

// What it answered, else what it published.
const RankState* newest_state(const Observations& seen, int rank) {
  const PeerObservation* peer = find(seen, rank);
  if (peer == nullptr) return &seen.self;
  if (peer->left) return &*peer->left;
  if (peer->state) return &*peer->state;
  return peer->seen ? &*peer->seen : nullptr;
}

std::string phase_word(Phase phase) {
  if (phase == Phase::kComputing) return "computing";
  return phase == Phase::kEncoding ? "encoding" : "waiting";
}

std::string last_seen(const Observations& seen, int rank) {
  const RankState* state = newest_state(seen, rank);
  return state == nullptr ? "" : "; last seen in " + position(*state);
}

std::string why_gone(const PeerObservation& peer) {
  if (!peer.left) return peer.detail;
  return peer.left->failed == Failed::kException ? "its program has ended by an exception"
                                                 : "its program has ended without an error";
}

// With two ranks nobody else can tell which of the two has lost its link.
std::string doubt(const Observations& seen) {
  const bool proven = seen.store == StoreState::kAnswering && seen.store_host != seen.self.rank;
  return seen.peers.size() == 1 && !proven
             ? " (or " + name(seen, seen.self.rank) + " is: with two ranks nobody can tell)"
             : "";
}

std::string sentence(Verb verb, const Observations& seen, int rank) {
  const PeerObservation* peer = find(seen, rank);
  const RankState* state = newest_state(seen, rank);
  const std::string who = name(seen, rank);
  switch (verb) {
    case Verb::kGone:
      return who + " is gone: " + why_gone(*peer) + last_seen(seen, rank);
    case Verb::kStopped:
      return who + " is stopped: its machine accepts the connection, the process does not answer" +
             (peer->beat_moved ? ", though its heartbeat still reaches the store" : "") + last_seen(seen, rank);
    case Verb::kUnreachable:
      return who + " is unreachable: " + peer->detail + " from " + peer->peer.address + doubt(seen) +
             (peer->beat_moved ? ", though its heartbeat still reaches the store" : "") + last_seen(seen, rank);
    case Verb::kSlow:
      return who + " is slow (" + phase_word(state->phase) + "): it answers, in " + position(*state);
    case Verb::kResumed:
      return who + " was stopped for " + seconds(state->gap_ms) + " and runs again";
    case Verb::kBehind:
      return who + " is behind: it waits in " + position(*state);
    case Verb::kCutOff:
      return who + " is cut off: it reaches no other rank";
    case Verb::kNobody:
      break;
  }
  return "";
}

// "ranks 0, 1 were waiting in step 200 bucket 2 hop 1. rank 3 was waiting in ..."
std::string who_waited(const Verdict& verdict, const Observations& seen) {
  std::map<std::string, std::vector<int>> waiting;
  auto add = [&](int rank, const RankState& state) {
    const bool blamed = std::find(verdict.ranks.begin(), verdict.ranks.end(), rank) != verdict.ranks.end();
    if (blamed) return;
    // A peer that still waits where we failed has no name for its operation yet: it is ours.
    const bool same_bucket = state.bucket == seen.self.bucket || seen.self.bucket < 0;
    const bool ours =
        state.operation.empty() && state.step == seen.self.step && state.hop == seen.self.hop && same_bucket;
    waiting[position(ours ? seen.self : state)].push_back(rank);
  };
  add(seen.self.rank, seen.self);
  for (const PeerObservation& peer : seen.peers)
    if (peer.state && (peer.state->failed != Failed::kNo || peer.state->phase == Phase::kWaiting))
      add(peer.peer.rank, *peer.state);
  std::string text;
  for (auto& [where, ranks] : waiting) {
    std::sort(ranks.begin(), ranks.end());
    text += " " + rank_list(ranks) + (ranks.size() == 1 ? " was" : " were") + " waiting in " + where + ".";
  }
  return text;
}

std::string store_text(const Observations& seen) {
  if (seen.store == StoreState::kNone) return "";
  const std::string host = seen.store_host >= 0 ? " (held by rank " + std::to_string(seen.store_host) + ")" : "";
  return seen.store == StoreState::kAnswering ? " Store: answering." : " Store" + host + ": not answering.";
}

std::string remedy(Verb verb) {
  switch (verb) {
    case Verb::kGone:
      return "reading that rank's own output and the kernel log for the reason (exit, out of memory, signal)";
    case Verb::kStopped:
      return "looking at that process on its host (stopped by a signal or a debugger, frozen, out of memory)";
    case Verb::kUnreachable:
      return "checking that host, its network interface and the firewall between the hosts";
    case Verb::kSlow:
      return "finding what that rank does at this step, or a longer timeout (THINWIRE_TIMEOUT_S)";
    case Verb::kResumed:
      return "finding what stopped that process, or a longer timeout (THINWIRE_TIMEOUT_S)";
    case Verb::kBehind:
      return "giving every rank the same number of steps and the same order of operations";
    case Verb::kCutOff:
      return "checking this host's network interface, cable and routes";
    case Verb::kNobody:
      return "a look at the network between the hosts, or a longer timeout (THINWIRE_TIMEOUT_S)";
  }
  return "";
}

std::string nobody_text(const Observations& seen) {
  return seen.self.failed == Failed::kTimeout ? "every rank answers and waits, nobody is missing"
                                              : "a connection between the ranks broke, though every rank answers";
}

}  // namespace

std::string position(const RankState& state) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (state.step >= 0) add("step " + std::to_string(state.step));
  if (state.bucket >= 0) add("bucket " + std::to_string(state.bucket));
  if (!state.operation.empty())
    add(state.operation);
  else if (state.hop > 0)
    add("hop " + std::to_string(state.hop));
  return text.empty() ? "no step" : text;
}

std::string rank_list(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string describe(const Verdict& verdict, const Observations& seen) {
  std::string text;
  for (int rank : verdict.ranks) text += (text.empty() ? "" : "; ") + sentence(verdict.verb, seen, rank);
  if (verdict.verb == Verb::kNobody) text = nobody_text(seen);
  return text + "." + who_waited(verdict, seen) + store_text(seen) + " try " + remedy(verdict.verb);
}

}  // namespace thinwire::comm
