// A world over a c10d process group that somebody else made (Python hands one over). It only seeds groups of our own:
// its store, behind a prefix, or the group itself as the first hop.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "thinwire/comm/world.hpp"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace thinwire::comm {

// REQUIRES: every rank of `hop1` calls. `hop1` and `hop2` are two groups over the same ranks that nobody else uses.
// Throws Error kInvalidArgument when their ranks or sizes differ.
std::unique_ptr<World> world_from_process_groups(c10::intrusive_ptr<c10d::ProcessGroup> hop1,
                                                 c10::intrusive_ptr<c10d::ProcessGroup> hop2,
                                                 const InitSettings& settings = {});

}  // namespace thinwire::comm
