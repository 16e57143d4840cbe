// What must surround processes that we start, in the order in which it must come to life (and end in reverse).
#pragma once

#include <string>
#include <vector>

#include "thinwire/cli/guard.hpp"
#include "thinwire/cli/link.hpp"
#include "thinwire/cli/process.hpp"
#include "thinwire/cli/signals.hpp"

namespace thinwire::cli {

struct LaunchScope {
  LaunchScope(int ranks, const std::string& rate, LinkMode mode)
      : link((remove_stale_netlabs(), make_link(ranks, rate, mode))),
        guard(link.lab ? link.lab->namespaces() : std::vector<std::string>{}) {}

  SignalScope signals;  // first: an interrupt must not leave half a link behind
  Link link;
  Guard guard;             // knows the namespaces
  ProcessScope processes;  // last: everything started is dead before the link goes
};

}  // namespace thinwire::cli
