#include "tests/dist/rank_program.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "thinwire/base/error.hpp"

namespace thinwire::testing_faults {
namespace {

int count_sockets() {
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code unreadable;
    sockets += std::filesystem::read_symlink(entry.path(), unreadable).string().rfind("socket:", 0) == 0 ? 1 : 0;
  }
  return sockets;
}

int count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// A thread that has ended is listed for a moment longer.
void print_leftovers() {
  int threads = count_threads(), sockets = count_sockets();
  for (int round = 0; round < 100 && (threads > 1 || sockets > 0); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    threads = count_threads();
    sockets = count_sockets();
  }
  std::printf("LEFT %d %d\n", threads, sockets);
  std::fflush(stdout);
}

void write_to_nobody() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  ::close(ends[0]);
  const char byte = 0;
  if (::write(ends[1], &byte, 1) < 0) std::puts("the write failed, as it should");
  ::close(ends[1]);
}

}  // namespace

int run_rank(const std::function<void()>& body) {
  int status = 0;
  try {
    body();
    std::puts("DONE");
  } catch (const Error& error) {
    std::printf("ERROR %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    status = 3;
  }
  std::fflush(stdout);
  print_leftovers();
  return status;
}

void meet_fault(const std::string& action) {
  std::puts("ready");
  std::fflush(stdout);
  if (action == "kill") ::raise(SIGKILL);
  if (action == "stop") ::raise(SIGSTOP);
  if (action == "write") write_to_nobody();
  if (action == "throw") throw Error(ErrorCode::kIo, "[test] the disk of this rank is full");
  if (action.rfind("sleep:", 0) == 0) std::this_thread::sleep_for(std::chrono::seconds(std::atoi(action.c_str() + 6)));
}

}  // namespace thinwire::testing_faults
