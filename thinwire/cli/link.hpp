// What carries the traffic of the ranks: loopback, a real shaped link in network namespaces, or an emulated one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thinwire/cli/netlab.hpp"

namespace thinwire::cli {

enum class LinkMode { kAuto, kNamespaces, kEmulated };

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Link {
  std::string rate;             // as asked for, with a latency perhaps; empty: none asked for
  bool emulated = false;        // the ranks slow themselves down (THINWIRE_EMULATED_LINK)
  std::string description;      // "1 Gbit/s, network namespaces (real TCP)", "1 Gbit/s, emulated (not root)"
  std::unique_ptr<NetLab> lab;  // set: network namespaces

  // Address of rank 0 as the others see it.
  std::string master_address() const;
  // The network namespace of a rank; empty: ours.
  std::string network_namespace(int rank) const;
  // What the ranks must be told about their link.
  Variables variables(int rank) const;
};

// Throws Error kInvalidArgument: no link that parse_link_speed (base/parse.hpp) reads, or a latency with kNamespaces,
// which have none.
void check_link(const std::string& rate, LinkMode mode);

// kAuto takes namespaces where it can and says in the description why not; for a link with a latency it emulates.
// Without namespaces "none" is plain loopback, since nothing is slowed. An empty rate: loopback, whatever the mode.
// Throws what check_link throws, and Error kUnavailable (kNamespaces, and this process cannot make them).
Link make_link(int ranks, const std::string& rate, LinkMode mode);

}  // namespace thinwire::cli
