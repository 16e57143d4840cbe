#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "thinwire/cli/verbs.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kHelp =
    "Runs and measures data-parallel training over slow links.\n"
    "Example: thinwire run -n 2 --link 100mbit -- ./char_gpt --text input.txt\n"
    "\n"
    "Verbs (each has --help):\n"
    "  run         start the ranks of a job on this machine\n"
    "  bench step  time one training step of thinwire and of PyTorch over a given link\n"
    "  bench codec time the codecs on one core against memcpy, and tell how exact they are\n"
    "  codec       encode and decode files of floats, and look into them\n"
    "  --version   versions, and what is compiled in\n"
    "  --help      this text\n";

int wrong_usage(const std::string& message) {
  std::fprintf(stderr, "thinwire: %s; see thinwire --help\n", message.c_str());
  return 2;
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) return wrong_usage("no verb");
  const std::string& verb = arguments[0];
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (verb == "--help" || verb == "-h" || verb == "help") return std::fputs(kHelp, stdout) < 0;
  if (verb == "--version") return std::fputs(version_text().c_str(), stdout) < 0;
  if (verb == "run") return run_verb(rest);
  if (verb == "codec") return codec_verb(rest);
  if (verb != "bench") return wrong_usage("no such verb: " + verb);
  const std::string what = rest.empty() ? "" : rest[0];
  if (what == "step") return bench_step_verb({rest.begin() + 1, rest.end()});
  if (what == "codec") return bench_codec_verb({rest.begin() + 1, rest.end()});
  return wrong_usage("bench knows two things to measure: bench step, bench codec");
}

}  // namespace

int command_main(const Arguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of write(2), after which the ranks are ended
  try {
    return dispatch(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thinwire: %s\n", error.what());
    return 1;
  }
}

}  // namespace thinwire::cli
