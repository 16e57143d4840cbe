// A world put together from its parts; what init_from_env and make_local_worlds hand out.
#pragma once

#include <memory>

#include "thinwire/comm/failure.hpp"
#include "thinwire/comm/watchdog.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {

// Given up in this order: failures (nobody is inside the handler any more), watchdog (tells the peers that this rank
// has ended), groups, progress, store (other ranks may still need it while this one closes its groups).
struct WorldParts {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  bool emulated = false;
  std::shared_ptr<void> store = nullptr;
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::unique_ptr<Group> hop1 = nullptr;
  std::unique_ptr<Group> hop2 = nullptr;
  std::shared_ptr<Watchdog> watchdog = nullptr;
  std::shared_ptr<FailureSlot> failures = nullptr;
};

std::unique_ptr<World> assemble_world(WorldParts parts);

}  // namespace thinwire::comm
