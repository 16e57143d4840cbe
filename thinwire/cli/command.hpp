// Runs a small program of the system (ip, tc) and waits for it.
#pragma once

#include <string>
#include <vector>

namespace thinwire::cli {

bool command_exists(const std::string& program);  // in PATH

// Throws Error kUnavailable that holds the whole command and what it wrote to standard error. Bounded: 20 s.
void run_command(const std::vector<std::string>& command);

}  // namespace thinwire::cli
