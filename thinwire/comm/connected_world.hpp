// From ranks that have met to a world: groups, watchdog, failure handler.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "thinwire/comm/rendezvous.hpp"
#include "thinwire/comm/watchdog.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {

// Opens a connection of the watchdog's own; `prefix` goes in front of its keys. Called long after the start-up is over.
using OpenBoard = std::function<std::unique_ptr<Bulletin>(const std::string& prefix)>;

// Joins `meeting` and forms both groups. Whatever fails is reported to the other ranks.  REQUIRES: `settings` as
// read_settings returns them.
std::unique_ptr<World> connect_world(Rendezvous& meeting, const EnvSettings& env, const InitSettings& settings,
                                     const OpenBoard& open);

// `settings` with what the environment says where they say nothing.
InitSettings read_settings(const InitSettings& settings);

// Both hops behind one emulated link, when `settings` ask for one.
void emulate_link(const InitSettings& settings, std::unique_ptr<Group>& hop1, std::unique_ptr<Group>& hop2);

}  // namespace thinwire::comm
