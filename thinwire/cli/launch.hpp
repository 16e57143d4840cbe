// Starts ranks on this machine, watches them, and leaves nothing behind: what `thinwire run` does, as a function.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thinwire/cli/link.hpp"

namespace thinwire::cli {

// What happens while the ranks run; each may be empty. All are called on the thread of run_ranks.
struct LaunchEvents {
  // Every rank runs: process ids (= process groups) by rank. Signals may be sent to them from the other events, too.
  std::function<void(const std::vector<pid_t>&, const Link&)> on_started;
  // One whole line of a rank, without its newline. Return false when nobody reads any more: the launch then ends.
  std::function<bool(int rank, bool standard_error, std::string_view line)> on_line;
  // One sentence about the launch itself ("rank 1 failed first: killed by SIGKILL").
  std::function<void(const std::string&)> on_notice;
};

struct LaunchSettings {
  int ranks = 1;
  std::vector<std::string> command;  // program and arguments, the same for every rank
  std::string link;                  // rate as tc writes it; empty: loopback
  LinkMode link_mode = LinkMode::kAuto;
  double timeout_s = 0;   // of the ranks' groups (THINWIRE_TIMEOUT_S); 0: what the environment says, else 300
  std::string log_dir;    // one file "rank<r>.log" per rank, its output as it came; empty: none
  Variables environment;  // wins over everything else
  LaunchEvents events;
};

struct RankOutcome {
  pid_t pid = -1;
  int wait_status = 0;             // as waitpid reports it
  double ended_s = 0;              // after the start of the launch
  bool ended_by_launcher = false;  // we sent the signal that ended it
};

struct LaunchOutcome {
  std::vector<RankOutcome> ranks;
  int first_failed = -1;      // rank; -1: none
  std::string first_failure;  // "killed by SIGKILL", "exit status 3"
  int interrupted_by = 0;     // the signal that ended the launch; 0: none
  int status = 0;             // for exit(): 0, the first failing rank's (128 + signal), or 128 + interrupted_by
  double wall_s = 0;
};

// Blocks until every rank has ended. After a first failure the others may end by themselves: those that still run get
// SIGKILL 2 s after the first of them has ended, at the latest timeout + 5 s after the failure. SIGINT, SIGTERM and
// SIGHUP of this process: SIGTERM to all ranks, SIGKILL after 2 s (at once on the second signal).
// One call at a time per process, from a process whose other threads leave SIGINT, SIGTERM, SIGHUP and SIGCHLD blocked.
// Throws Error: what start_process and make_link throw; then no rank runs.
LaunchOutcome run_ranks(const LaunchSettings& settings);

}  // namespace thinwire::cli
