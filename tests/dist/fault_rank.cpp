// One rank of a fault test: repeats one operation and, as the victim, does at one step what it is told to.
//   fault_rank OPERATION STEPS VICTIM ACTION AT_STEP
// OPERATION: hop1 | hop2 | dense | barrier | broadcast (the victim sends). ACTION of the victim, before its operation
// of step AT_STEP:
//   kill | stop | sleep:SECONDS | leave | write (to a connection whose other end has gone) | throw | mark (nothing but
//   the line "ready")
// Prints "ready" at AT_STEP (the victim), "DONE" or "ERROR <code> <text>", then "LEFT <threads> <sockets>".
// Exit status: 0, or 3 after an Error.
#include <ATen/ATen.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/dist/rank_program.hpp"
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

void train(World& world, const Plan& plan) {
  Progress& progress = world.progress();
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    progress.step = step;
    progress.bucket = 0;
    progress.phase = Phase::kComputing;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (world.rank() == plan.victim && step == plan.at_step) {
      testing_faults::meet_fault(plan.action);
      if (plan.action == "leave") return;
    }
    progress.hop = plan.operation == "hop2" ? 2 : 1;
    progress.phase = Phase::kWaiting;
    start(world, plan, step)->wait();
  }
}

int run(const Plan& plan) {
  return testing_faults::run_rank([&] {
    const std::unique_ptr<World> world = init_from_env();
    train(*world, plan);
  });
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
