// Runs a program and keeps what it printed; what the tests of the examples have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace thinwire::test {

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments left, const Arguments& right);
Arguments words(const std::string& text);  // separated by spaces

struct Finished {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

Finished run_program(const Arguments& command);

// `program` (char_gpt or its plain sibling) with the smallest model that learns, so that a step takes milliseconds.
Arguments small_gpt(const std::string& program, const std::string& text, int steps);

// The JSON in a file; an empty object when there is none.
nlohmann::json json_in(const std::string& path);

}  // namespace thinwire::test
