// Cleans up after us when we are killed in a way that leaves no time to (SIGKILL, a crash).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "thinwire/cli/process.hpp"

namespace thinwire::cli {

// A small process beside ours, in a session of its own. If this process ends while a Guard lives, the guard sends
// SIGKILL to the process groups it was told of and removes the network namespaces; the destructor dismisses it.
// Descendants that moved to another process group are found only while we live (ProcessScope).
class Guard {
 public:
  explicit Guard(const std::vector<std::string>& network_namespaces);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void watch(pid_t process_group) noexcept;

 private:
  FileDescriptor line_;
  pid_t pid_ = -1;
};

}  // namespace thinwire::cli
