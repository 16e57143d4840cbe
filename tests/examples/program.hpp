// Runs a program and keeps what it printed.
#pragma once

#include <string>
#include <vector>

namespace thinwire::test {

struct Finished {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

Finished run_program(const std::vector<std::string>& command);

}  // namespace thinwire::test
