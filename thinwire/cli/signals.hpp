// Signals as something to poll.
#pragma once

#include <csignal>
#include <vector>

#include "thinwire/cli/process.hpp"

namespace thinwire::cli {

// While one lives, SIGCHLD and the signals that ask us to end (unless ignored, as under nohup) arrive at fd() instead
// of interrupting. Its end restores what was before; signals that arrived and were not read are dropped.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  int fd() const { return fd_.get(); }
  // Every signal that has arrived since the last call, without blocking.
  std::vector<int> arrived();

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  FileDescriptor fd_;
};

}  // namespace thinwire::cli
