#include "tests/dist/process_ranks.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "thinwire/base/clock.hpp"

extern char** environ;

namespace thinwire::tests {
namespace {

struct Running {
  pid_t pid;
  int output;  // read end
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) variables[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : variables)
    if (!value.empty()) list.push_back(name + "=" + value);
  return list;
}

// Everything that allocates happens before the fork.
Running start(const RankSpec& spec) {
  std::vector<std::string> arguments{"/proc/self/exe"};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  std::vector<std::string> environment = merged_environment(spec.environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    setpgid(0, 0);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execve("/proc/self/exe", argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads what is there; true at the end of the output.
bool drain(int descriptor, std::string& output) {
  char buffer[4096];
  const ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count > 0) output.append(buffer, static_cast<std::size_t>(count));
  return count == 0;
}

void collect_until(std::vector<Running>& running, std::vector<RankResult>& results, const Deadline& deadline) {
  const double begin_s = monotonic_seconds();
  std::size_t open = running.size();
  while (open > 0 && !deadline.passed()) {
    std::vector<pollfd> waiting;
    for (const Running& rank : running) waiting.push_back({.fd = rank.output, .events = POLLIN, .revents = 0});
    poll(waiting.data(), waiting.size(), 50);
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0 || !drain(running[i].output, results[i].output)) continue;
      close(std::exchange(running[i].output, -1));
      results[i].seconds = monotonic_seconds() - begin_s;
      --open;
    }
  }
}

}  // namespace

int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(descriptor);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::map<std::string, std::string> rank_variables(int rank, int size, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

std::vector<RankResult> run_processes(const std::vector<RankSpec>& specs, std::int64_t deadline_ms) {
  std::vector<Running> running;
  std::vector<RankResult> results(specs.size());
  for (const RankSpec& spec : specs) running.push_back(start(spec));
  collect_until(running, results, Deadline::in_ms(deadline_ms));
  for (std::size_t i = 0; i < running.size(); ++i) {
    const bool late = running[i].output >= 0;
    kill(-running[i].pid, SIGKILL);  // also what the rank may have started
    int status = 0;
    waitpid(running[i].pid, &status, 0);
    results[i].status = late ? -1 : exit_status(status);
    if (late) close(running[i].output);
  }
  return results;
}

std::vector<RankResult> run_world(int size, const std::vector<std::string>& arguments, std::int64_t deadline_ms,
                                  const std::map<std::string, std::string>& more) {
  const int port = free_port();
  std::vector<RankSpec> specs;
  for (int rank = 0; rank < size; ++rank) {
    RankSpec spec{.arguments = arguments, .environment = rank_variables(rank, size, port)};
    for (const auto& [name, value] : more) spec.environment[name] = value;
    specs.push_back(std::move(spec));
  }
  return run_processes(specs, deadline_ms);
}

}  // namespace thinwire::tests
