#include "thinwire/comm/diagnosis_observe.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thinwire/base/clock.hpp"

namespace thinwire::comm {
namespace {

using Values = std::vector<StoreLine::Value>;

std::optional<RankState> published(const Values& values, std::size_t at, int rank) {
  if (at >= values.size() || !values[at]) return std::nullopt;
  std::optional<RankState> state = parse_rank_state(*values[at]);
  return state && state->rank == rank ? state : std::nullopt;
}

bool ended(const PeerObservation& peer) {
  return peer.reach == Reach::kRefused || peer.left;
}

bool somebody_ended(const Observations& seen) {
  return std::any_of(seen.peers.begin(), seen.peers.end(), ended);
}

bool store_host_ended(const Observations& seen) {
  return std::any_of(seen.peers.begin(), seen.peers.end(),
                     [&](const PeerObservation& peer) { return ended(peer) && peer.peer.rank == seen.store_host; });
}

std::int64_t left_ms(const Deadline& deadline) {
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(deadline.remaining_s() * 1e3));
}

// The two looks lie limits.ask_ms apart whenever a beat matters, since a silent peer uses that time up.
void add_store(Observations* seen, const Values& earlier, const Values& later) {
  for (std::size_t i = 0; i < seen->peers.size(); ++i) {
    PeerObservation& peer = seen->peers[i];
    const auto before = published(earlier, i, peer.peer.rank);
    peer.seen = published(later, i, peer.peer.rank);
    peer.beat_moved = before && peer.seen && peer.seen->beat > before->beat;
  }
}

}  // namespace

void look_again(Watchdog& watchdog, const JudgeSettings& settings, Observations* seen) {
  const std::vector<Endpoint> peers = watchdog.peers();
  std::vector<Answer> answers = ask(peers, {RequestKind::kState, watchdog.rank(), ""}, settings.limits.ask_ms);
  seen->peers.resize(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    PeerObservation& peer = seen->peers[i];
    peer.peer = peers[i];
    peer.reach = answers[i].reach;
    peer.detail = std::move(answers[i].detail);
    peer.no_route = answers[i].no_route;
    peer.state = peer.reach == Reach::kAnswered ? parse_rank_state(answers[i].text) : std::nullopt;
    if (peer.reach == Reach::kAnswered && (!peer.state || peer.state->rank != peers[i].rank)) {
      peer.reach = Reach::kRefused;
      peer.detail = "another program answers on its port";
      peer.state.reset();
    }
    peer.left = watchdog.left(peers[i].rank);
  }
  seen->self = watchdog.state();
  seen->interface_up = interface_is_up(watchdog.address());
}

Observations observe(Watchdog& watchdog, const JudgeSettings& settings) {
  Observations seen;
  seen.store_host = settings.store_host;
  seen.timeout_ms = watchdog.timeout_ms();
  StoreLine* line = watchdog.store_line();
  if (line == nullptr) {
    look_again(watchdog, settings, &seen);
    return seen;
  }
  const Deadline deadline = Deadline::in_ms(settings.limits.store_ms);
  const std::int64_t look = line->request_look();
  look_again(watchdog, settings, &seen);
  const std::optional<Values> earlier = line->await_look(look, store_host_ended(seen) ? 0 : left_ms(deadline));
  std::optional<Values> later = earlier;
  if (earlier && !somebody_ended(seen)) later = line->await_look(line->request_look(), left_ms(deadline));
  seen.store = later ? StoreState::kAnswering : StoreState::kSilent;
  const Values known = line->last_read();
  add_store(&seen, earlier.value_or(known), later.value_or(known));
  return seen;
}

}  // namespace thinwire::comm
