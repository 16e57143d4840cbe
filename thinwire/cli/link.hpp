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
  std::string rate;             // as asked for; empty: none asked for
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

// kAuto takes namespaces where it can and says in the description why not. An empty rate: loopback, whatever the mode.
// Throws Error kInvalidArgument (rate), kUnavailable (kNamespaces, and this process cannot make them).
Link make_link(int ranks, const std::string& rate, LinkMode mode);

}  // namespace thinwire::cli
