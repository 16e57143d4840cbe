#include "thinwire/comm/world.hpp"

#include <string>
#include <utility>

#include "thinwire/comm/assembled_world.hpp"
#include "thinwire/comm/connected_world.hpp"
#include "thinwire/comm/local_group.hpp"
#include "thinwire/comm/process_state.hpp"

namespace thinwire::comm {
namespace {

std::unique_ptr<World> world_of_one(const EnvSettings& env, const InitSettings& settings) {
  if (env.rank != 0)
    fail(ErrorCode::kInvalidArgument, {.place = "comm::init_from_env",
                                       .what = "rank given by " + env.launcher,
                                       .got = std::to_string(env.rank) + " in a world of 1",
                                       .want = "0",
                                       .hint = "WORLD_SIZE with the number of ranks"});
  WorldParts parts{.local_rank = env.local_rank, .emulated = !settings.link.empty()};
  parts.hop1 = std::move(make_local_groups(1, settings.timeout_ms)[0]);
  parts.hop2 = std::move(make_local_groups(1, settings.timeout_ms)[0]);
  emulate_link(settings, parts.hop1, parts.hop2);
  return assemble_world(std::move(parts));
}

}  // namespace

std::unique_ptr<World> init_from_env(const InitSettings& given) {
  ignore_broken_pipes();
  const InitSettings settings = read_settings(given);
  const EnvSettings env = read_env_settings();
  if (env.size == 1) return world_of_one(env, settings);
  Rendezvous meeting({.env = env, .timeout_ms = settings.timeout_ms, .interface = settings.interface});
  const StoreAddress address = meeting.address();
  return connect_world(meeting, env, settings, [address](const std::string& prefix) {
    return make_store_bulletin(address.host, address.port, prefix);
  });
}

}  // namespace thinwire::comm
