#include "thinwire/cli/rank_environment.hpp"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>

#include "thinwire/base/error.hpp"
#include "thinwire/cli/process.hpp"

namespace thinwire::cli {
namespace {

using Environment = std::map<std::string, std::string>;

Environment our_environment() {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void set_torchrun_variables(int rank, const Rendezvous& rendezvous, const Link& link, Environment& all) {
  const std::string own = std::to_string(rank), ranks = std::to_string(rendezvous.ranks);
  for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) all[name] = own;
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) all[name] = ranks;
  all["GROUP_RANK"] = "0";
  all["GROUP_WORLD_SIZE"] = "1";
  all["ROLE_NAME"] = "default";
  all["MASTER_ADDR"] = link.master_address();
  all["MASTER_PORT"] = std::to_string(rendezvous.port);
  all["TORCHELASTIC_RESTART_COUNT"] = "0";
  all["TORCHELASTIC_MAX_RESTARTS"] = "0";
  all["TORCHELASTIC_RUN_ID"] = rendezvous.run_id;
  // torchrun's agent hosts the store for its ranks; here rank 0 does.
  all["TORCHELASTIC_USE_AGENT_STORE"] = "False";
}

bool nobody_listens(int port) {
  const FileDescriptor socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

std::vector<std::string> rank_environment(int rank, const Rendezvous& rendezvous, const Link& link, double timeout_s,
                                          const Variables& extra) {
  Environment all = our_environment();
  set_torchrun_variables(rank, rendezvous, link, all);
  all.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, processors() / rendezvous.ranks)));
  all.emplace("GLOO_SOCKET_IFNAME", "lo");
  if (!link.rate.empty()) all.erase("THINWIRE_EMULATED_LINK");  // of an outer link, which would slow the ranks twice
  for (const auto& [name, value] : link.variables(rank)) all[name] = value;
  if (timeout_s > 0) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.10g", timeout_s);
    all["THINWIRE_TIMEOUT_S"] = text.data();
  }
  for (const auto& [name, value] : extra) all[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(name + "=" + value);
  return environment;
}

int free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(15'000, 32'000);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = ports(random);
    if (nobody_listens(port)) return port;
  }
  fail(ErrorCode::kUnavailable,
       {"cli::free_port", "no free TCP port between 15000 and 32000 in 1000 tries", "", "", ""});
}

std::string new_run_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return "thinwire-" + std::to_string(getpid()) + "-" +
         std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace thinwire::cli
