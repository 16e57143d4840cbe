// Child processes that cannot outlive us: each in a process group of its own, dead when we are, its descendants found.
// One thread of the process may use this at a time (fork and child reaping are process-wide).
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "thinwire/base/file_descriptor.hpp"

namespace thinwire::cli {

struct Pipe {
  FileDescriptor read_end, write_end;
};
Pipe make_pipe();  // close-on-exec; Error kUnavailable

struct ProcessSpec {
  std::vector<std::string> command;      // program (looked up in PATH) and its arguments
  std::vector<std::string> environment;  // all of it, "NAME=value"
  std::string network_namespace;         // file name below /run/netns; empty: ours
  bool pipe_input = false;               // false: standard input is /dev/null
};

struct Process {
  pid_t pid = -1;  // also the id of its process group
  FileDescriptor input, output, error;
};

// Returns once the program runs. The child gets SIGKILL when the calling thread ends, however it ends.
// Throws Error kNotFound (no such program), kInvalidArgument (it cannot be executed), kUnavailable (anything else).
Process start_process(const ProcessSpec& spec);

// "exit status 3" or "killed by SIGKILL", from what waitpid reported.
std::string describe_wait_status(int wait_status);
// The status as a shell reports it: 128 + signal for a signal.
int shell_status(int wait_status);
std::string signal_name(int signal_number);

// While one lives, orphaned descendants become our children; its end kills what has been started meanwhile and waits.
class ProcessScope {
 public:
  ProcessScope();
  ~ProcessScope();
  ProcessScope(const ProcessScope&) = delete;
  ProcessScope& operator=(const ProcessScope&) = delete;

  // Kills and reaps every child, and child of a child, that did not exist when the scope began. Bounded: 5 s.
  void kill_leftovers() noexcept;

 private:
  std::set<pid_t> before_;
  bool was_subreaper_ = false;
};

}  // namespace thinwire::cli
