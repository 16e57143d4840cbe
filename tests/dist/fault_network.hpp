// A host per rank on this machine: network namespaces on one bridge, for tests that cut links. Needs root.
#pragma once

#include <string>

namespace thinwire::testing_faults {

class FaultNetwork {
 public:
  // Throws std::runtime_error when a step fails; what was made is removed again.
  explicit FaultNetwork(int size);
  ~FaultNetwork();
  FaultNetwork(const FaultNetwork&) = delete;
  FaultNetwork& operator=(const FaultNetwork&) = delete;

  std::string name_space(int rank) const { return id_ + "-" + std::to_string(rank); }
  static std::string address(int rank) { return "10.79.0." + std::to_string(rank + 1); }
  void cut_outside(int rank);  // the host's end goes down: no carrier inside
  void cut_inside(int rank);   // the rank's own interface goes down: no route
  void blackhole(int rank);    // leaves the bridge: the carrier stays

 private:
  std::string outer(int rank) const { return id_ + "v" + std::to_string(rank); }
  void make_host(int rank);
  void remove();

  int size_;
  std::string id_;
};

// Why namespaces cannot be made here; empty when they can.
std::string why_no_namespaces();

}  // namespace thinwire::testing_faults
