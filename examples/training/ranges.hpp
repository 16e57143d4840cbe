// Numbers on a command line, with messages that a person can read. CLI11's own checks print bounds of 300 digits and
// let through what does not fit: it turns 99999999999999999999 into the largest number and -1 into an unsigned one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace examples {

constexpr std::int64_t kMostOfAnything = std::int64_t{1} << 40;

CLI::Validator whole_number(std::int64_t from, std::int64_t to = kMostOfAnything);
// For seeds: every number of 64 bits.
CLI::Validator unsigned_number();
// Finite ones.
CLI::Validator number(double from, double to = std::numeric_limits<double>::max());
// For names of files and directories.
CLI::Validator not_empty();

}  // namespace examples
