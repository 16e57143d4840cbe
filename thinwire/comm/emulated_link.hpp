// A slower copy of any group: every operation takes at least as long as on a link of a given rate. Emulated, and
// labelled so; real data still moves through the group inside.
//
// One operation holds the link for messages * latency + max(sent, received) / rate, from when it is started or from
// when the link is free, whichever is later. The link is one per rank and direction-less: all groups of a world share
// it, as they share a network card. Not modelled: a peer that starts late, contention inside the network, protocol
// overhead.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

struct LinkSettings {
  double bytes_per_second = 12.5e6;
  double latency_s = 0;   // per message; a ring of n ranks pays it 2(n-1) times
  std::string name = {};  // "100mbit": as the user wrote it
};

// "100mbit", "2.5gbit", "64kbit"; with a latency: "100mbit,0.5ms". "none" is no limit. All that parse_link_speed
// (base/parse.hpp) reads. Throws Error kInvalidArgument.
LinkSettings parse_link(const std::string& text);

// The network card of one rank. Thread safe.
class EmulatedLink {
 public:
  explicit EmulatedLink(const LinkSettings& settings) : settings_(settings) {}
  const LinkSettings& settings() const { return settings_; }

  // Occupies the link; returns when that ends, on monotonic_seconds().
  double occupy(std::int64_t bytes, int messages);

 private:
  const LinkSettings settings_;
  std::mutex mutex_;
  double free_at_s_ = 0;  // guarded by mutex_
};

std::unique_ptr<Group> make_emulated_group(std::unique_ptr<Group> inner, std::shared_ptr<EmulatedLink> link);

}  // namespace thinwire::comm
