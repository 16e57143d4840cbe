// One rank of a fault test: repeats one operation and, as the victim, does at one step what it is told to.
//   fault_rank OPERATION STEPS VICTIM ACTION AT_STEP
// OPERATION: hop1 | hop2 | dense | barrier | broadcast (the victim sends). ACTION of the victim, before its operation
// of step AT_STEP:
//   kill | stop | sleep:SECONDS | leave | write (to a connection whose other end has gone) | mark (nothing but the line
//   "ready")
// Prints "ready" at AT_STEP (the victim), "DONE" or "ERROR <code> <text>", then "LEFT <threads> <sockets>".
// Exit status: 0, or 3 after an Error.
#include <ATen/ATen.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {
namespace {

struct Plan {
  std::string operation;
  std::int64_t steps;
  int victim;
  std::string action;
  std::int64_t at_step;
};

Handle start(World& world, const Plan& plan, std::int64_t step) {
  const std::string& operation = plan.operation;
  const int size = world.size();
  if (operation == "hop1") {
    std::vector<std::int64_t> splits(size, 1 << 14);
    at::Tensor in = at::full({size << 14}, world.rank(), at::kByte);
    return world.hop1().all_to_all(at::empty_like(in), in, splits, splits, {"hop 1", step, 0});
  }
  if (operation == "hop2") {
    at::Tensor in = at::full({1 << 14}, world.rank(), at::kByte);
    return world.hop2().all_gather(at::empty({size << 14}, at::kByte), in, {"hop 2", step, 0});
  }
  if (operation == "dense")
    return world.hop1().all_reduce(at::ones({1 << 14}, at::kFloat), ReduceOp::kSum, {"dense", step, 0});
  if (operation == "broadcast")
    return world.hop1().broadcast(at::ones({1 << 20}, at::kFloat), plan.victim, {"broadcast", step, 0});
  return world.hop1().barrier({"barrier", step, -1});
}

void write_to_nobody() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  ::close(ends[0]);
  const char byte = 0;
  if (::write(ends[1], &byte, 1) < 0) std::puts("the write failed, as it should");
  ::close(ends[1]);
}

// False: the victim leaves.
bool act(const std::string& action) {
  std::puts("ready");
  std::fflush(stdout);
  if (action == "kill") ::raise(SIGKILL);
  if (action == "stop") ::raise(SIGSTOP);
  if (action == "write") write_to_nobody();
  if (action.rfind("sleep:", 0) == 0) std::this_thread::sleep_for(std::chrono::seconds(std::atoi(action.c_str() + 6)));
  return action != "leave";
}

void train(World& world, const Plan& plan) {
  Progress& progress = world.progress();
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    progress.step = step;
    progress.bucket = 0;
    progress.phase = Phase::kComputing;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (world.rank() == plan.victim && step == plan.at_step && !act(plan.action)) return;
    progress.hop = plan.operation == "hop2" ? 2 : 1;
    progress.phase = Phase::kWaiting;
    start(world, plan, step)->wait();
  }
}

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

int run(const Plan& plan) {
  int status = 0;
  try {
    const std::unique_ptr<World> world = init_from_env();
    train(*world, plan);
    std::puts("DONE");
  } catch (const Error& error) {
    std::printf("ERROR %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    std::fflush(stdout);
    status = 3;
  }
  print_leftovers();
  return status;
}

}  // namespace
}  // namespace thinwire::comm

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "fault_rank: five arguments; got %d, see the head of its source\n", argc - 1);
    return 2;
  }
  return thinwire::comm::run({argv[1], std::atoll(argv[2]), std::atoi(argv[3]), argv[4], std::atoll(argv[5])});
}
