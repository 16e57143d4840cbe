// CLI11, the way every verb uses it.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::cli {

// One clear line on standard error; returns the status for wrong usage.
inline int usage_error(const std::string& command, const std::string& message) {
  std::fprintf(stderr, "%s: %s; see %s --help\n", command.c_str(), message.c_str(), command.c_str());
  return 2;
}

// Nothing when the verb shall go on; else the exit status (help was printed, or what is wrong).
inline std::optional<int> parse_arguments(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 wants
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(app.get_name(), error.what());
  }
  return std::nullopt;
}

}  // namespace thinwire::cli
