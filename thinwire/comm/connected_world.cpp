#include "thinwire/comm/connected_world.hpp"

#include <string>
#include <utility>
#include <vector>

#include "thinwire/base/env.hpp"
#include "thinwire/comm/assembled_world.hpp"
#include "thinwire/comm/c10d_group.hpp"
#include "thinwire/comm/diagnosis_handler.hpp"
#include "thinwire/comm/emulated_link.hpp"

namespace thinwire::comm {
namespace {

std::unique_ptr<Group> form_group(Rendezvous& meeting, const std::vector<RankCard>& cards, const WorldParts& parts,
                                  const InitSettings& settings, const char* name) {
  GlooSettings gloo{.rank = parts.rank,
                    .size = parts.size,
                    .timeout_ms = settings.timeout_ms,
                    .address = cards[static_cast<std::size_t>(parts.rank)].address,
                    .prefix = meeting.prefix() + name};
  for (const RankCard& card : cards) gloo.addresses.push_back(card.address);
  return make_gloo_group(meeting.store(), gloo, [slot = parts.failures](const OpTag& tag, const std::string& text) {
    return slot->call(tag, text);
  });
}

std::unique_ptr<World> join_and_form(Rendezvous& meeting, const EnvSettings& env, const InitSettings& settings,
                                     const OpenBoard& open) {
  const std::vector<RankCard> cards = meeting.join();
  const RankCard& own = cards[static_cast<std::size_t>(env.rank)];
  WorldParts parts{
      .rank = env.rank, .size = env.size, .local_rank = env.local_rank, .emulated = !settings.link.empty()};
  parts.store = meeting.hosted();
  parts.failures = std::make_shared<FailureSlot>(plain_failure_handler("comm"));
  const WatchdogSettings watched{
      .rank = env.rank, .host = own.host, .address = own.address, .timeout_ms = settings.timeout_ms};
  parts.watchdog = std::make_shared<Watchdog>(watched, *parts.progress);
  const std::vector<std::string> endpoints = meeting.gather("endpoint", parts.watchdog->endpoint());
  parts.hop1 = form_group(meeting, cards, parts, settings, "hop1");
  parts.hop2 = form_group(meeting, cards, parts, settings, "hop2");
  meeting.gather("formed", "1");
  parts.watchdog->meet(endpoints, [open, prefix = meeting.prefix() + "watchdog/"] { return open(prefix); });
  emulate_link(settings, parts.hop1, parts.hop2);
  const auto free_others = [hop1 = parts.hop1.get(), hop2 = parts.hop2.get()] {
    hop1->shutdown();
    hop2->shutdown();
  };
  parts.failures->install(
      make_failure_handler(*parts.watchdog, free_others, {.store_host = env.agent_hosts_store ? -1 : 0}));
  return assemble_world(std::move(parts));
}

}  // namespace

std::unique_ptr<World> connect_world(Rendezvous& meeting, const EnvSettings& env, const InitSettings& settings,
                                     const OpenBoard& open) {
  try {
    return join_and_form(meeting, env, settings, open);
  } catch (const Error& error) {
    throw meeting.report(error);
  }
}

InitSettings read_settings(const InitSettings& settings) {
  InitSettings result = settings;
  if (const auto timeout_ms = read_timeout_ms()) result.timeout_ms = *timeout_ms;
  if (result.interface.empty()) result.interface = env_text("GLOO_SOCKET_IFNAME").value_or("");
  if (result.link.empty()) result.link = env_text("THINWIRE_EMULATED_LINK").value_or("");
  if (result.link == "none") result.link.clear();
  if (!result.link.empty()) parse_link(result.link);
  if (result.timeout_ms <= 0)
    fail(ErrorCode::kInvalidArgument, {.place = "comm::InitSettings",
                                       .what = "timeout_ms",
                                       .got = std::to_string(result.timeout_ms),
                                       .want = "more than 0",
                                       .hint = ""});
  return result;
}

void emulate_link(const InitSettings& settings, std::unique_ptr<Group>& hop1, std::unique_ptr<Group>& hop2) {
  if (settings.link.empty()) return;
  const auto link = std::make_shared<EmulatedLink>(parse_link(settings.link));
  hop1 = make_emulated_group(std::move(hop1), link);
  hop2 = make_emulated_group(std::move(hop2), link);
}

}  // namespace thinwire::comm
