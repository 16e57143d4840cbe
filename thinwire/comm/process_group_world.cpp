#include "thinwire/comm/process_group_world.hpp"

#include <string>
#include <utility>

#include "thinwire/base/env.hpp"
#include "thinwire/comm/assembled_world.hpp"
#include "thinwire/comm/c10d_group.hpp"
#include "thinwire/comm/c10d_group.native.hpp"
#include "thinwire/comm/connected_world.hpp"
#include "thinwire/comm/process_state.hpp"

namespace thinwire::comm {
namespace {

constexpr const char* kPlace = "comm::world_from_process_groups";

void check_seeds(const Seed& one, const Seed& two) {
  const auto say = [](const Seed& seed) {
    return "rank " + std::to_string(seed.rank) + " of " + std::to_string(seed.size);
  };
  if (one.rank == two.rank && one.size == two.size) return;
  fail(ErrorCode::kInvalidArgument, {.place = kPlace,
                                     .what = "the two groups differ",
                                     .got = say(one) + " and " + say(two),
                                     .want = "the same ranks in both",
                                     .hint = "two new_group() calls with the same ranks"});
}

EnvSettings env_of(const Seed& seed) {
  EnvSettings env{.launcher = "process group", .rank = seed.rank, .size = seed.size};
  env.host = env_text("MASTER_ADDR").value_or("127.0.0.1");
  if (const auto local = env_text("LOCAL_RANK")) env.local_rank = std::atoi(local->c_str());
  return env;
}

// How often this rank has called with this group: the same on all ranks, and part of every key.
std::string next_prefix(Store& store, int rank) {
  const std::string key = "thinwire/calls/" + std::to_string(rank);
  const auto held = store.read({key})[0];
  const int calls = held ? std::atoi(held->c_str()) + 1 : 0;
  store.set(key, std::to_string(calls));
  return "thinwire/" + std::to_string(calls) + "/";
}

std::unique_ptr<World> over_own_groups(const Seed& seed, const InitSettings& settings) {
  const EnvSettings env = env_of(seed);
  auto store = wrap_store(seed.store->native());
  const std::string prefix = next_prefix(*store, seed.rank);
  Rendezvous meeting({.env = env, .timeout_ms = settings.timeout_ms, .interface = settings.interface}, std::move(store),
                     prefix);
  return connect_world(meeting, env, settings,
                       [store = seed.store](const std::string& board) { return make_cloned_bulletin(*store, board); });
}

// Without a store there is nothing to form groups on and nowhere to publish: the groups themselves, and plain errors.
std::unique_ptr<World> over_given_groups(const Seed& seed, c10d::ProcessGroup& hop1, c10d::ProcessGroup& hop2,
                                         const InitSettings& settings) {
  WorldParts parts{
      .rank = seed.rank, .size = seed.size, .local_rank = env_of(seed).local_rank, .emulated = !settings.link.empty()};
  parts.hop1 = make_c10d_group(hop1, plain_failure_handler("comm"));
  parts.hop2 = make_c10d_group(hop2, plain_failure_handler("comm"));
  emulate_link(settings, parts.hop1, parts.hop2);
  return assemble_world(std::move(parts));
}

}  // namespace

std::unique_ptr<World> world_from_process_groups(c10::intrusive_ptr<c10d::ProcessGroup> hop1,
                                                 c10::intrusive_ptr<c10d::ProcessGroup> hop2,
                                                 const InitSettings& given) {
  ignore_broken_pipes();
  const InitSettings settings = read_settings(given);
  const Seed seed = seed_of(*hop1);
  check_seeds(seed, seed_of(*hop2));
  if (seed.backend == "gloo" && seed.store && seed.size > 1) return over_own_groups(seed, settings);
  return over_given_groups(seed, *hop1, *hop2, settings);
}

}  // namespace thinwire::comm
