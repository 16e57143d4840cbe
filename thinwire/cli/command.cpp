#include "thinwire/cli/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/cli/process.hpp"

namespace thinwire::cli {
namespace {

constexpr int kLimitMs = 20'000;

std::string joined(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Everything the child writes until it closes the pipe. False when the time is over.
bool read_all(int fd, std::string& text) {
  const Deadline limit = Deadline::in_ms(kLimitMs);
  std::array<char, 4096> part;
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    const int left_ms = static_cast<int>(limit.remaining_s() * 1e3);
    if (left_ms <= 0) return false;
    if (poll(&waiting, 1, left_ms) <= 0) continue;
    const ssize_t got = read(fd, part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
  }
}

pid_t spawn(const std::vector<std::string>& command, int error_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, error_fd, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int status = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) fail(ErrorCode::kUnavailable, {"cli::run_command", joined(command), std::strerror(status), "", ""});
  return child;
}

}  // namespace

bool command_exists(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

void run_command(const std::vector<std::string>& command) {
  Pipe pipe = make_pipe();
  const pid_t child = spawn(command, pipe.write_end.get());
  pipe.write_end.close();
  std::string said;
  const bool ended = read_all(pipe.read_end.get(), said);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended && status == 0) return;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  const std::string got = ended ? describe_wait_status(status) : "no end within 20 s";
  fail(ErrorCode::kUnavailable,
       {"cli::run_command", joined(command), got + (said.empty() ? "" : " (" + said + ")"), "exit status 0", ""});
}

}  // namespace thinwire::cli
