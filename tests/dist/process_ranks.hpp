// Starts copies of a test program as ranks of one job and collects what becomes of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace thinwire::tests {

struct RankSpec {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // on top of the test's own; an empty value removes the variable
};

struct RankResult {
  int status = -1;     // exit status; 128 + signal when it was killed; -1: the deadline passed and it was killed here
  std::string output;  // standard output and standard error
  double seconds = 0;  // from the start of the job to its end
};

// A TCP port of loopback on which nobody listens at this moment.
int free_port();

// The variables that torchrun sets, for rank `rank` of `size` on one host.
std::map<std::string, std::string> rank_variables(int rank, int size, int port);

// Runs /proc/self/exe once per spec, each in a process group of its own. Kills what is left at the deadline; leaves no
// process behind.
std::vector<RankResult> run_processes(const std::vector<RankSpec>& specs, std::int64_t deadline_ms);

// `size` ranks with the variables above, all with the same arguments.
std::vector<RankResult> run_world(int size, const std::vector<std::string>& arguments,
                                  std::int64_t deadline_ms = 60'000,
                                  const std::map<std::string, std::string>& more = {});

}  // namespace thinwire::tests
