#include "tests/dist/fault_network.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

namespace thinwire::testing_faults {
namespace {

bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void must(const std::string& command) {
  if (!succeeds(command)) throw std::runtime_error("'" + command + "' failed");
}

std::atomic<int> networks_made{0};

}  // namespace

// Interface names are limited to 15 characters.
FaultNetwork::FaultNetwork(int size)
    : size_(size), id_("twf" + std::to_string(::getpid() % 100'000) + char('a' + networks_made++ % 26)) {
  try {
    must("ip link add " + id_ + " type bridge");
    must("ip link set " + id_ + " up");
    for (int rank = 0; rank < size; ++rank) make_host(rank);
  } catch (const std::runtime_error&) {
    remove();
    throw;
  }
}

FaultNetwork::~FaultNetwork() {
  remove();
}

void FaultNetwork::make_host(int rank) {
  const std::string space = name_space(rank);
  must("ip netns add " + space);
  must("ip link add " + outer(rank) + " type veth peer name eth0 netns " + space);
  must("ip link set " + outer(rank) + " master " + id_ + " up");
  must("ip -n " + space + " addr add " + address(rank) + "/24 dev eth0");
  must("ip -n " + space + " link set eth0 up");
  must("ip -n " + space + " link set lo up");
}

void FaultNetwork::remove() {
  for (int rank = 0; rank < size_; ++rank) {
    succeeds("ip link del " + outer(rank));
    succeeds("ip netns del " + name_space(rank));
  }
  succeeds("ip link del " + id_);
}

void FaultNetwork::cut_outside(int rank) {
  must("ip link set " + outer(rank) + " down");
}
void FaultNetwork::cut_inside(int rank) {
  must("ip -n " + name_space(rank) + " link set eth0 down");
}
void FaultNetwork::blackhole(int rank) {
  must("ip link set " + outer(rank) + " nomaster");
}

std::string why_no_namespaces() {
  if (::geteuid() != 0) return "needs root to make network namespaces";
  const std::string probe = "twfp" + std::to_string(::getpid() % 100'000);
  const bool works = succeeds("ip netns add " + probe) && succeeds("ip link add " + probe + " type bridge");
  succeeds("ip link del " + probe);
  succeeds("ip netns del " + probe);
  return works ? "" : "cannot make network namespaces or bridges here (ip netns add, ip link add)";
}

}  // namespace thinwire::testing_faults
