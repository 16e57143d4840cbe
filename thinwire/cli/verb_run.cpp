#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <span>
#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file_descriptor.hpp"
#include "thinwire/cli/launch.hpp"
#include "thinwire/cli/parse_arguments.hpp"
#include "thinwire/cli/verbs.hpp"
#include "thinwire/comm/env_settings.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kName = "thinwire run";
constexpr const char* kAbout =
    "Starts N copies of a program on this machine, as the ranks of one training job.\n"
    "Example: thinwire run -n 2 --link 100mbit -- ./char_gpt --text input.txt\n"
    "In general: thinwire run -n N [OPTIONS] -- PROGRAM [ARGUMENTS...]\n";
constexpr const char* kMore =
    "Each rank finds the variables that torchrun sets. Output lines are prefixed with \"[rank] \". When a rank fails "
    "the\n"
    "others may end by themselves: they are killed 2 s after the first of them has ended, or S + 5 s after the "
    "failure\n"
    "(S: --timeout). Exit status: 0, that of the rank that failed first (128 + signal), 127 no such program, 126 not\n"
    "executable, 2 wrong usage.";

struct RunOptions {
  LaunchSettings launch;
  std::vector<std::string> variables;  // "K=V"
};

void declare(CLI::App& app, RunOptions& options) {
  LaunchSettings& launch = options.launch;
  app.footer(kMore);
  app.add_option("-n,--ranks", launch.ranks, "number of ranks")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  app.add_option("--link", launch.link,
                 "rate of each rank's link as tc writes it (100mbit, 1gbit), or none: real TCP\n"
                 "between network namespaces for root, else emulated by thinwire itself; an\n"
                 "emulated link may have a latency (1gbit,0.2ms)")
      ->type_name("RATE");
  app.add_option("--link-mode", launch.link_mode, "auto, namespaces or emulated (auto)")
      ->type_name("MODE")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LinkMode>{{"auto", LinkMode::kAuto},
                                                                          {"namespaces", LinkMode::kNamespaces},
                                                                          {"emulated", LinkMode::kEmulated}})
                      .description(""));
  app.add_option("--timeout", launch.timeout_s, "seconds for which a silent rank is waited for (300)")
      ->type_name("S")
      ->check(CLI::Range(comm::kMinTimeout_s, comm::kMaxTimeout_s).description(""));
  app.add_option("--log-dir", launch.log_dir, "also write each rank's output to rank<r>.log in this folder")
      ->type_name("DIR");
  app.add_option("--env", options.variables, "NAME=VALUE for the ranks; may be repeated")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
}

// Not stdio: a line must be out before the next event, and a reader that has gone must be noticed.
bool print(int fd, const std::string& text) {
  return write_all(fd, std::as_bytes(std::span(text)));
}

LaunchEvents printing_events() {
  LaunchEvents events;
  events.on_started = [](const std::vector<pid_t>&, const Link& link) {
    if (!link.rate.empty()) print(STDOUT_FILENO, "link: " + link.description + "\n");
  };
  events.on_line = [](int rank, bool standard_error, std::string_view line) {
    return print(standard_error ? STDERR_FILENO : STDOUT_FILENO,
                 "[" + std::to_string(rank) + "] " + std::string(line) + "\n");
  };
  events.on_notice = [](const std::string& text) { print(STDERR_FILENO, std::string(kName) + ": " + text + "\n"); };
  return events;
}

// What CLI11 lets through and would have no effect. Empty: nothing.
std::string useless_option(const CLI::App& app, const LaunchSettings& launch) {
  if (std::isnan(launch.timeout_s)) return "--timeout; got nan, want seconds";
  if (app.count("--link") > 0 && launch.link.empty()) return "--link; got nothing, want a rate or none";
  if (app.count("--log-dir") > 0 && launch.log_dir.empty()) return "--log-dir; got nothing, want a folder";
  if (app.count("--link-mode") > 0 && launch.link.empty()) return "--link-mode without --link";
  if (launch.command.empty() || launch.command.front().empty()) return "no program after --";
  return "";
}

bool asks_for_help(const Arguments& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& argument) { return argument == "-h" || argument == "--help"; });
}

int status_of(const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return 127;
  return error.code() == ErrorCode::kInvalidArgument ? 126 : 1;
}

}  // namespace

int run_verb(const Arguments& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end() && !asks_for_help(arguments))
    return usage_error(kName, "no program; write it after --");
  RunOptions options;
  CLI::App app(kAbout, kName);
  declare(app, options);
  if (const auto status = parse_arguments(app, {arguments.begin(), dashes})) return *status;
  options.launch.command.assign(dashes + 1, arguments.end());
  if (const std::string useless = useless_option(app, options.launch); !useless.empty())
    return usage_error(kName, useless);
  for (const std::string& text : options.variables) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error(kName, "--env; got \"" + text + "\", want NAME=VALUE");
    options.launch.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  try {
    check_link(options.launch.link, options.launch.link_mode);
  } catch (const Error& error) {
    return usage_error(kName, error.what());
  }
  options.launch.events = printing_events();
  try {
    return run_ranks(options.launch).status;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return status_of(error);
  }
}

}  // namespace thinwire::cli
