// The processes that `thinwire bench step` asks to run a contender: one per rank, all of the same program, spoken to in
// lines over their standard input and output, idle (blocked in read) while another program's turn is on.
//
//   worker, once:       {"ready": true} and perhaps {"note": ...}  |  {"unavailable": "why"} and exit
//   to the worker:      run CONTENDER STEPS
//   worker, each time:  {"step_s": [...], "sent_bytes": N | null, "loss": x, "stage": "one_bit" | ...}
//   end:                end of file on its standard input
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "thinwire/cli/launch_scope.hpp"
#include "thinwire/cli/line_splitter.hpp"

namespace thinwire::cli {

// Thrown when a signal asks the bench to end.
struct Interrupted {
  int signal_number;
};

struct WorkerProgram {
  std::string title;  // for messages: "thinwire-bench-step"
  std::vector<std::string> command;
};

class BenchWorkers {
 public:
  // Starts one process per rank. `scope` must outlive this. Throws what start_process throws.
  BenchWorkers(LaunchScope& scope, WorkerProgram program, int ranks);

  // Why the program cannot run here ("no module named torch"); empty: every rank is ready.
  // Throws Error kPeerFailure (a worker ended, with its last words), kTimeout (naming the ranks).
  std::string wait_until_ready();

  // Every rank runs `steps` steps; their answers by rank. Same errors; Interrupted.
  std::vector<nlohmann::json> run(const std::string& contender, int steps);

 private:
  struct Worker {
    Process process;
    LineSplitter out, err;
    std::vector<nlohmann::json> answers;
    std::string last_words;
  };

  void ask(const std::string& line);
  std::vector<nlohmann::json> collect(double limit_s);
  void wait_for_output();
  bool read_some(FileDescriptor& fd, LineSplitter& lines, const std::function<void(std::string_view)>& sink);
  void take_answer(Worker& worker, std::string_view line);
  [[noreturn]] void ended(std::size_t rank);

  LaunchScope& scope_;
  const WorkerProgram program_;
  std::vector<Worker> workers_;
};

}  // namespace thinwire::cli
