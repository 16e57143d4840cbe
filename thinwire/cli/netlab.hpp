// N hosts on this machine: network namespaces on one bridge, each link shaped in both directions, real TCP between
// them. Everything lies in namespaces of its own (the bridge too), so the machine's own network neither changes nor
// collides.
#pragma once

#include <string>
#include <vector>

namespace thinwire::cli {

// Why this process cannot make one ("not root", "no ip (apt-get install iproute2)"); empty: it can.
std::string why_no_netlab();

// Removes the namespaces of launchers that are dead (their names carry the process id and its start time).
void remove_stale_netlabs() noexcept;

// Not thread safe. The destructor removes everything.
class NetLab {
 public:
  static constexpr const char* kInterface = "eth0";

  // `rate` as tc writes it ("100mbit"); "none": no shaping. Throws Error kUnavailable with the command that failed.
  NetLab(int hosts, const std::string& rate);
  ~NetLab();
  NetLab(const NetLab&) = delete;
  NetLab& operator=(const NetLab&) = delete;

  const std::string& host(int index) const { return hosts_.at(static_cast<std::size_t>(index)); }
  static std::string address(int index);  // "10.77.0.1" for host 0
  std::vector<std::string> namespaces() const;
  // The namespace of the bridge; host i's other end is the device "port<i>" in it.
  const std::string& switch_namespace() const { return switch_; }

 private:
  void add_host(int index, const std::string& rate);
  void remove() noexcept;

  std::string switch_;
  std::vector<std::string> hosts_;
};

}  // namespace thinwire::cli
