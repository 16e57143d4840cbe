#include "thinwire/cli/link.hpp"

#include <array>
#include <cstdio>

#include "thinwire/base/error.hpp"
#include "thinwire/base/parse.hpp"
#include "thinwire/cli/link_rate.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// "1 Gbit/s", "1 Gbit/s with 0.2 ms per message".
std::string readable_link(const LinkSpeed& speed) {
  std::string rate = readable_rate(speed.bytes_per_second.value_or(0) * 8);
  if (speed.latency_s == 0) return rate;
  std::array<char, 32> latency;
  std::snprintf(latency.data(), latency.size(), "%.4g", speed.latency_s * 1e3);
  return rate + " with " + latency.data() + " ms per message";
}

// Sets link.lab, or returns why there is none.
std::string try_namespaces(int ranks, Link& link) {
  if (parse_link_speed(link.rate).latency_s > 0) return "network namespaces have no latency";
  std::string why = why_no_netlab();
  if (!why.empty()) return why;
  try {
    link.lab = std::make_unique<NetLab>(ranks, link.rate);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return error.what();
  }
  return "";
}

}  // namespace

std::string Link::master_address() const {
  return lab ? NetLab::address(0) : kLoopback;
}

std::string Link::network_namespace(int rank) const {
  return lab ? lab->host(rank) : "";
}

Variables Link::variables(int rank) const {
  if (lab)
    return {{"GLOO_SOCKET_IFNAME", NetLab::kInterface},
            {"THINWIRE_LINK_INTERFACE", NetLab::kInterface},
            {"THINWIRE_LINK_NAMESPACE", lab->host(rank)},
            {"THINWIRE_SWITCH_NAMESPACE", lab->switch_namespace()}};
  if (emulated) return {{"THINWIRE_EMULATED_LINK", rate}};
  return {};
}

void check_link(const std::string& rate, LinkMode mode) {
  if (rate.empty() || parse_link_speed(rate).latency_s == 0 || mode != LinkMode::kNamespaces) return;
  fail(ErrorCode::kInvalidArgument, {"cli::check_link", "link between network namespaces", "\"" + rate + "\"",
                                     "a rate without a latency", "--link-mode emulated"});
}

Link make_link(int ranks, const std::string& rate, LinkMode mode) {
  Link link;
  link.rate = rate;
  if (rate.empty()) {
    link.description = "loopback";
    return link;
  }
  check_link(rate, mode);
  const LinkSpeed asked_for = parse_link_speed(rate);
  const std::string speed = readable_link(asked_for);
  std::string why = "asked for";
  if (mode != LinkMode::kEmulated) why = try_namespaces(ranks, link);
  if (link.lab) {
    link.description = speed + ", network namespaces (real TCP)";
    return link;
  }
  if (mode == LinkMode::kNamespaces)
    fail(ErrorCode::kUnavailable, {"cli::make_link", "network namespaces: " + why, "", "", "--link-mode emulated"});
  if (!asked_for.bytes_per_second && asked_for.latency_s == 0) {
    link.description = speed + ", loopback (" + why + ")";
    return link;
  }
  link.emulated = true;
  link.description = speed + ", emulated (" + why + ")";
  return link;
}

}  // namespace thinwire::cli
