// Runs the ranks of one job as processes, notes when each says what, and how each ends. Nothing survives it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/dist/fault_network.hpp"

namespace thinwire::testing_faults {

struct JobSettings {
  int size = 3;
  int timeout_s = 4;                        // T
  std::string program = {};                 // empty: fault_rank
  std::vector<std::string> arguments = {};  // of fault_rank
  std::vector<int> absent = {};             // ranks that never start
  FaultNetwork* network = nullptr;          // null: loopback
  // Of single ranks, in place of what the harness would give them.
  std::map<int, std::map<std::string, std::string>> variables = {};
};

struct RankResult {
  pid_t pid = -1;
  int exit_status = -1;  // -1: ended by a signal or by the harness
  int signal = 0;
  bool overdue = false;  // the harness had to end it
  std::string error;     // the text after "ERROR "
  double error_s = -1;   // when it came, on the monotonic clock
  double end_s = -1;     // when the process had ended
  bool done = false;
  int threads_left = -1;
  int sockets_left = -1;
  std::string log;  // everything else, for messages
};

class FaultJob {
 public:
  explicit FaultJob(const JobSettings& settings);
  // Ends what still runs with SIGKILL.
  ~FaultJob();
  FaultJob(const FaultJob&) = delete;
  FaultJob& operator=(const FaultJob&) = delete;

  // When the victim said "ready"; nullopt when it did not within `limit_s` or somebody ended before.
  std::optional<double> await_ready(int rank, double limit_s);
  void send(int rank, int signal);
  // Waits until these ranks have ended; false when the limit passed.
  bool await_end(const std::vector<int>& ranks, double limit_s);
  // Ends what is left and returns everybody's result.
  std::vector<RankResult> finish();

 private:
  struct Process {
    RankResult result;
    int pipe = -1;
    std::string partial;
    std::optional<double> ready_s;
    bool running = false;
  };
  void start(int rank);
  void pump(double wait_s);
  void take_line(Process& process, const std::string& line);
  void reap(Process& process);
  bool pump_until(const std::function<bool()>& condition, double limit_s);

  JobSettings settings_;
  int port_;
  std::vector<Process> processes_;
};

}  // namespace thinwire::testing_faults
