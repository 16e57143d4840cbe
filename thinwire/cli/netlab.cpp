#include "thinwire/cli/netlab.hpp"

#include <dirent.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "thinwire/base/error.hpp"
#include "thinwire/cli/command.hpp"
#include "thinwire/cli/link_rate.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kPrefix = "thinwire-";
constexpr const char* kNamespaceFolder = "/run/netns";

// Start time of a process in clock ticks since boot; empty when there is no such process.
std::string start_time(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;  // field 22 of the line, the 20th after the name
  return field;
}

void remove_namespace(const std::string& name) noexcept {
  const std::string file = std::string(kNamespaceFolder) + "/" + name;
  umount2(file.c_str(), MNT_DETACH);
  unlink(file.c_str());
}

// "thinwire-<pid>.<start time>-<sequence>-<host>" of a process that no longer runs.
bool is_stale(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return false;
  const std::string rest = name.substr(std::string(kPrefix).size());
  const std::size_t dot = rest.find('.'), dash = rest.find('-');
  if (dot == std::string::npos || dash == std::string::npos || dot > dash) return false;
  return start_time(rest.substr(0, dot)) != rest.substr(dot + 1, dash - dot - 1);
}

std::string unique_prefix() {
  static int sequence = 0;
  const std::string pid = std::to_string(getpid());
  return kPrefix + pid + "." + start_time(pid) + "-" + std::to_string(sequence++) + "-";
}

// A token bucket that holds at least 1 ms of the rate; smaller ones cannot reach it.
std::vector<std::string> shaper(const std::string& rate) {
  const double burst = std::max(131'072.0, link_bits_per_second(rate) / 8 * 1e-3);
  return {"root", "tbf", "rate", rate, "burst", std::to_string(static_cast<long>(burst)), "latency", "20ms"};
}

void shape(const std::string& name, const std::string& device, const std::string& rate) {
  std::vector<std::string> command{"tc", "-n", name, "qdisc", "add", "dev", device};
  for (const std::string& word : shaper(rate)) command.push_back(word);
  run_command(command);
}

}  // namespace

std::string why_no_netlab() {
  if (geteuid() != 0) return "not root";
  for (const char* program : {"ip", "tc"})
    if (!command_exists(program)) return std::string("no ") + program + " (apt-get install iproute2)";
  return "";
}

void remove_stale_netlabs() noexcept {
  DIR* folder = opendir(kNamespaceFolder);
  if (folder == nullptr) return;
  std::vector<std::string> stale;
  while (const dirent* entry = readdir(folder))
    if (is_stale(entry->d_name)) stale.emplace_back(entry->d_name);
  closedir(folder);
  for (const std::string& name : stale) remove_namespace(name);
}

NetLab::NetLab(int hosts, const std::string& rate) {
  if (hosts < 1 || hosts > 1000)
    fail(ErrorCode::kInvalidArgument, {"cli::netlab", "number of hosts", std::to_string(hosts), "1 to 1000", ""});
  const std::string prefix = unique_prefix();
  switch_ = prefix + "switch";
  for (int i = 0; i < hosts; ++i) hosts_.push_back(prefix + std::to_string(i));
  try {
    run_command({"ip", "netns", "add", switch_});
    run_command({"ip", "-n", switch_, "link", "add", "bridge", "type", "bridge"});
    run_command({"ip", "-n", switch_, "link", "set", "bridge", "addrgenmode", "none", "up"});
    for (int i = 0; i < hosts; ++i) add_host(i, rate);
  } catch (...) {
    remove();
    throw;
  }
}

NetLab::~NetLab() {
  remove();
}

// No IPv6 addresses (addrgenmode none): their announcements would be counted as traffic.
void NetLab::add_host(int index, const std::string& rate) {
  const std::string& name = host(index);
  const std::string port = "port" + std::to_string(index);
  run_command({"ip", "netns", "add", name});
  run_command({"ip", "-n", switch_, "link", "add", port, "type", "veth", "peer", "name", kInterface, "netns", name});
  run_command({"ip", "-n", switch_, "link", "set", port, "addrgenmode", "none", "master", "bridge", "up"});
  run_command({"ip", "-n", name, "addr", "add", address(index) + "/16", "dev", kInterface});
  run_command({"ip", "-n", name, "link", "set", kInterface, "addrgenmode", "none", "up"});
  run_command({"ip", "-n", name, "link", "set", "lo", "up"});
  if (rate == kNoLimit) return;
  shape(name, kInterface, rate);
  shape(switch_, port, rate);
}

std::string NetLab::address(int index) {
  const int number = index + 1;
  return "10.77." + std::to_string(number / 256) + "." + std::to_string(number % 256);
}

std::vector<std::string> NetLab::namespaces() const {
  std::vector<std::string> all = hosts_;
  all.push_back(switch_);
  return all;
}

void NetLab::remove() noexcept {
  for (const std::string& name : hosts_) remove_namespace(name);
  remove_namespace(switch_);
}

}  // namespace thinwire::cli
