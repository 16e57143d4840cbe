#include "thinwire/cli/link.hpp"

#include "thinwire/base/error.hpp"
#include "thinwire/cli/link_rate.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// Sets link.lab, or returns why there is none.
std::string try_namespaces(int ranks, Link& link) {
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
  if (emulated && rate != kNoLimit) return {{"THINWIRE_EMULATED_LINK", rate}};
  return {};
}

Link make_link(int ranks, const std::string& rate, LinkMode mode) {
  Link link;
  link.rate = rate;
  if (rate.empty()) {
    link.description = "loopback";
    return link;
  }
  const std::string speed = readable_rate(link_bits_per_second(rate));
  std::string why = "asked for";
  if (mode != LinkMode::kEmulated) why = try_namespaces(ranks, link);
  if (link.lab) {
    link.description = speed + ", network namespaces (real TCP)";
    return link;
  }
  if (mode == LinkMode::kNamespaces)
    fail(ErrorCode::kUnavailable, {"cli::make_link", "network namespaces: " + why, "", "", "--link-mode emulated"});
  link.emulated = true;
  link.description = speed + ", emulated (" + why + ")";
  return link;
}

}  // namespace thinwire::cli
