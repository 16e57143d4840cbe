// Runs the built command the way a shell does, for tests.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "thinwire/base/clock.hpp"
#include "thinwire/cli/process.hpp"

namespace thinwire::cli {

struct Ended {
  int status = -1;  // as a shell reports it; -1: killed by us since it did not end in time
  std::string out, err;
};

inline std::vector<std::string> environment_now() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

class CommandLine {
 public:
  explicit CommandLine(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), THINWIRE_COMMAND);
    process_ = start_process({arguments, environment_now(), "", false});
  }
  ~CommandLine() {
    if (process_.pid > 0) kill(process_.pid, SIGKILL);
    if (process_.pid > 0) waitpid(process_.pid, nullptr, 0);
  }

  pid_t pid() const { return process_.pid; }
  std::string so_far() const { return ended_.out; }

  // Reads what it writes until `text` has appeared on either stream, or the command has ended. False: it has not.
  bool wait_for(const std::string& text, double limit_s = 20) {
    return read_until([&] { return (ended_.out + ended_.err).find(text) != std::string::npos; }, limit_s);
  }

  Ended wait(double limit_s = 60) {
    if (!read_until([] { return false; }, limit_s) && process_.output.valid()) return ended_;
    int status = 0;
    waitpid(process_.pid, &status, 0);
    process_.pid = -1;
    ended_.status = shell_status(status);
    return ended_;
  }

 private:
  bool read_until(const std::function<bool()>& enough, double limit_s) {
    const Deadline limit = Deadline::in_ms(static_cast<std::int64_t>(limit_s * 1e3));
    while (!enough() && !limit.passed() && (process_.output.valid() || process_.error.valid())) {
      std::array<pollfd, 2> waiting{{{process_.output.get(), POLLIN, 0}, {process_.error.get(), POLLIN, 0}}};
      poll(waiting.data(), 2, 50);
      if (waiting[0].revents != 0) read_some(process_.output, ended_.out);
      if (waiting[1].revents != 0) read_some(process_.error, ended_.err);
    }
    return enough();
  }

  static void read_some(FileDescriptor& fd, std::string& text) {
    std::array<char, 65'536> bytes;
    const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got <= 0) fd.close();
  }

  Process process_;
  Ended ended_;
};

inline Ended run_thinwire(const std::vector<std::string>& arguments) {
  return CommandLine(arguments).wait();
}

// Processes that carry "NAME=VALUE" in their environment: nothing that a rank started can hide from this.
inline int processes_with(const std::string& variable) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    if (all.find(variable) != std::string::npos) ++count;
  }
  return count;
}

inline bool becomes_true(const std::function<bool()>& condition, double limit_s = 10) {
  const Deadline limit = Deadline::in_ms(static_cast<std::int64_t>(limit_s * 1e3));
  while (!limit.passed()) {
    if (condition()) return true;
    usleep(20'000);
  }
  return condition();
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace thinwire::cli
