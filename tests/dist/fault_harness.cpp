#include "tests/dist/fault_harness.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "thinwire/base/clock.hpp"

namespace thinwire::testing_faults {
namespace {

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return ntohs(address.sin_port);
}

std::vector<std::string> environment_of(const JobSettings& settings, int rank, int port) {
  std::vector<std::string> wanted;
  for (char** one = environ; *one != nullptr; ++one) wanted.emplace_back(*one);
  const bool loopback = settings.network == nullptr;
  std::map<std::string, std::string> variables{{"RANK", std::to_string(rank)},
                                               {"LOCAL_RANK", loopback ? std::to_string(rank) : "0"},
                                               {"WORLD_SIZE", std::to_string(settings.size)},
                                               {"MASTER_ADDR", loopback ? "127.0.0.1" : FaultNetwork::address(0)},
                                               {"MASTER_PORT", std::to_string(port)},
                                               {"GLOO_SOCKET_IFNAME", loopback ? "lo" : "eth0"},
                                               {"THINWIRE_TIMEOUT_S", std::to_string(settings.timeout_s)},
                                               {"OMP_NUM_THREADS", "1"}};
  if (const auto own = settings.variables.find(rank); own != settings.variables.end())
    for (const auto& [name, value] : own->second) variables[name] = value;
  for (const auto& [name, value] : variables) {
    std::erase_if(wanted, [&](const std::string& one) { return one.rfind(name + "=", 0) == 0; });
    wanted.push_back(name + "=" + value);
  }
  return wanted;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

FaultJob::FaultJob(const JobSettings& settings) : settings_(settings), port_(free_port()), processes_(settings.size) {
  for (int rank = 0; rank < settings.size; ++rank)
    if (std::count(settings.absent.begin(), settings.absent.end(), rank) == 0) start(rank);
}

FaultJob::~FaultJob() {
  for (Process& process : processes_) {
    if (process.running) {
      ::kill(process.result.pid, SIGKILL);
      ::waitpid(process.result.pid, nullptr, 0);
    }
    if (process.pipe >= 0) ::close(process.pipe);
  }
}

// Only async-signal-safe calls between fork and exec: other threads of this process run jobs as well.
void FaultJob::start(int rank) {
  std::vector<std::string> command;
  if (settings_.network != nullptr) command = {"ip", "netns", "exec", settings_.network->name_space(rank)};
  command.push_back(settings_.program.empty() ? THINWIRE_FAULT_RANK : settings_.program);
  command.insert(command.end(), settings_.arguments.begin(), settings_.arguments.end());
  std::vector<std::string> environment = environment_of(settings_, rank, port_);
  const std::vector<char*> arguments = pointers(command), variables = pointers(environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  processes_[rank].result.pid = pid;
  processes_[rank].pipe = ends[0];
  processes_[rank].running = pid > 0;
}

void FaultJob::take_line(Process& process, const std::string& line) {
  if (line == "ready") {
    process.ready_s = monotonic_seconds();
  } else if (line.rfind("ERROR ", 0) == 0) {
    process.result.error = line.substr(6);
    process.result.error_s = monotonic_seconds();
  } else if (line == "DONE") {
    process.result.done = true;
  } else if (std::sscanf(line.c_str(), "LEFT %d %d", &process.result.threads_left, &process.result.sockets_left) != 2) {
    process.result.log += line + "\n";
  }
}

void FaultJob::pump(double wait_s) {
  std::vector<pollfd> wanted;
  for (const Process& process : processes_) wanted.push_back({process.pipe, POLLIN, 0});
  ::poll(wanted.data(), wanted.size(), static_cast<int>(wait_s * 1e3));
  for (Process& process : processes_) {
    char buffer[4096];
    ssize_t got = 0;
    while (process.pipe >= 0 && (got = ::read(process.pipe, buffer, sizeof buffer)) > 0)
      process.partial.append(buffer, static_cast<std::size_t>(got));
    if (process.pipe >= 0 && got == 0) {
      ::close(process.pipe);
      process.pipe = -1;
    }
    for (std::size_t end; (end = process.partial.find('\n')) != std::string::npos; process.partial.erase(0, end + 1))
      take_line(process, process.partial.substr(0, end));
    reap(process);
  }
}

void FaultJob::reap(Process& process) {
  int status = 0;
  if (!process.running || process.pipe >= 0 || ::waitpid(process.result.pid, &status, 0) != process.result.pid) return;
  process.running = false;
  process.result.end_s = monotonic_seconds();
  if (WIFEXITED(status)) process.result.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) process.result.signal = WTERMSIG(status);
}

bool FaultJob::pump_until(const std::function<bool()>& condition, double limit_s) {
  const Deadline deadline = Deadline::in_ms(static_cast<std::int64_t>(limit_s * 1e3));
  while (!condition()) {
    if (deadline.passed()) return false;
    pump(0.02);
  }
  return true;
}

std::optional<double> FaultJob::await_ready(int rank, double limit_s) {
  const Process& process = processes_[rank];
  pump_until([&] { return process.ready_s || !process.running; }, limit_s);
  return process.ready_s;
}

void FaultJob::send(int rank, int signal) {
  if (processes_[rank].running) ::kill(processes_[rank].result.pid, signal);
}

bool FaultJob::await_end(const std::vector<int>& ranks, double limit_s) {
  return pump_until(
      [&] { return std::none_of(ranks.begin(), ranks.end(), [&](int rank) { return processes_[rank].running; }); },
      limit_s);
}

std::vector<RankResult> FaultJob::finish() {
  for (Process& process : processes_) {
    if (!process.running) continue;
    process.result.overdue = true;
    ::kill(process.result.pid, SIGKILL);
  }
  pump_until([&] { return std::none_of(processes_.begin(), processes_.end(), [](auto& one) { return one.running; }); },
             5);
  std::vector<RankResult> results;
  for (const Process& process : processes_) results.push_back(process.result);
  return results;
}

}  // namespace thinwire::testing_faults
