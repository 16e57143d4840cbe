#include "thinwire/comm/diagnosis.hpp"

#include <algorithm>
#include <tuple>

namespace thinwire::comm {
namespace {

template <typename Predicate>
std::vector<int> peers_that(const Observations& seen, Predicate predicate) {
  std::vector<int> ranks;
  for (const PeerObservation& peer : seen.peers)
    if (predicate(peer)) ranks.push_back(peer.peer.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

bool none_answers(const Observations& seen) {
  return peers_that(seen, [](const PeerObservation& p) { return p.reach == Reach::kAnswered; }).empty();
}

// A store on another machine that answers proves that our own link works; one of our own proves nothing.
bool store_proves_our_link(const Observations& seen) {
  return seen.store == StoreState::kAnswering && seen.store_host != seen.self.rank;
}

// With one peer, "it is unreachable" and "we are cut off" look alike from here. A store on the peer's side that is
// silent as well tells nothing new; then our own interface decides, and if that looks well, the peer is named.
bool cut_off(const Observations& seen) {
  const auto unreachable = peers_that(seen, [](const PeerObservation& p) { return p.reach == Reach::kUnreachable; });
  if (seen.peers.empty() || unreachable.size() != seen.peers.size()) return false;
  const auto no_route = peers_that(seen, [](const PeerObservation& p) { return p.no_route; });
  if (!seen.interface_up || no_route.size() == seen.peers.size()) return true;
  if (store_proves_our_link(seen)) return false;
  if (seen.peers.size() > 1) return true;
  return seen.store == StoreState::kSilent && seen.store_host != seen.peers.front().peer.rank;
}

bool timed_out(const Observations& seen) {
  const auto others =
      peers_that(seen, [](const PeerObservation& p) { return p.state && p.state->failed == Failed::kTimeout; });
  return seen.self.failed == Failed::kTimeout || !others.empty();
}

bool waits(const RankState& state) {
  return state.failed != Failed::kNo || state.phase == Phase::kWaiting;
}

auto place_of(const RankState& state) {
  return std::tuple(state.step, state.bucket, state.hop);
}

// Everybody answers. Only an expired wait points at who did not come; a closed connection does not.
Verdict decide_among_the_living(const Observations& seen) {
  if (!timed_out(seen)) return {Verb::kNobody, {}};
  const auto slow = peers_that(seen, [](const PeerObservation& p) { return !waits(*p.state); });
  if (!slow.empty()) return {Verb::kSlow, slow};
  const auto resumed =
      peers_that(seen, [&](const PeerObservation& p) { return p.state->gap_ms > seen.timeout_ms / 2; });
  if (!resumed.empty()) return {Verb::kResumed, resumed};
  auto furthest = place_of(seen.self);
  for (const PeerObservation& peer : seen.peers) furthest = std::max(furthest, place_of(*peer.state));
  std::vector<int> behind = peers_that(seen, [&](const PeerObservation& p) { return place_of(*p.state) < furthest; });
  if (place_of(seen.self) < furthest) behind.push_back(seen.self.rank);
  std::sort(behind.begin(), behind.end());
  return behind.empty() ? Verdict{Verb::kNobody, {}} : Verdict{Verb::kBehind, behind};
}

}  // namespace

Verdict decide(const Observations& seen) {
  const int self = seen.self.rank;
  if (none_answers(seen) && !seen.peers.empty() && seen.self.gap_ms > seen.timeout_ms / 2)
    return {Verb::kResumed, {self}};
  if (cut_off(seen)) return {Verb::kCutOff, {self}};
  const auto gone = peers_that(seen, [](const PeerObservation& p) { return p.reach == Reach::kRefused || p.left; });
  if (!gone.empty()) return {Verb::kGone, gone};
  const auto stopped = peers_that(seen, [](const PeerObservation& p) { return p.reach == Reach::kSilent; });
  if (!stopped.empty()) return {Verb::kStopped, stopped};
  const auto unreachable = peers_that(seen, [](const PeerObservation& p) { return p.reach == Reach::kUnreachable; });
  if (!unreachable.empty()) return {Verb::kUnreachable, unreachable};
  return decide_among_the_living(seen);
}

}  // namespace thinwire::comm
