// One rank of a training job that meets a fault: trains, and as the victim does at one step what it is told to.
//   train_rank OPERATION STEPS VICTIM ACTION AT_STEP
// OPERATION, which the others are in when the victim acts:
//   dense | one_bit (compressed from step 2 on) | mean | barrier | save:DIRECTORY | load:DIRECTORY
//   shape | dtype | setting (the victim's model or settings differ)
// ACTION: those of rank_program.hpp | nap:SECONDS (in the middle of backward) | leave | join (no more batches)
// Prints "STATE <hash>" of parameters and moments at the end, and what rank_program.hpp says.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/dist/rank_program.hpp"
#include "tests/dist/train_parts.hpp"
#include "thinwire/thinwire.hpp"

namespace thinwire::tests {
namespace {

using testing_faults::meet_fault;

struct Plan {
  std::string operation;
  std::int64_t steps;
  int victim;
  std::string action;
  std::int64_t at_step;

  std::string directory() const { return operation.substr(operation.find(':') + 1); }
  bool is(const std::string& name) const { return operation.rfind(name, 0) == 0; }
  bool between_steps() const { return is("mean") || is("barrier") || is("save") || is("load"); }
};

// Nothing but body matrices, so that after the freeze nothing travels dense. A pause lies between the second layer and
// the third, where backward has already handed a bucket over.
struct PausingNetImpl : torch::nn::Module {
  explicit PausingNetImpl(std::int64_t width) {
    const auto layer = [&](std::int64_t out) {
      return torch::nn::Linear(torch::nn::LinearOptions(64, out).bias(false));
    };
    first = register_module("first", layer(64));
    second = register_module("second", layer(64));
    third = register_module("third", layer(width));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return third(InBackward::apply(torch::tanh(second(torch::tanh(first(x))))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};
TORCH_MODULE(PausingNet);

class Trainer {
 public:
  Trainer(World& world, const Plan& plan)
      : plan_(plan),
        victim_(world.rank() == plan.victim),
        net_(victim_ && plan.is("shape") ? 65 : 64),
        parallel_(prepared(), world, settings()) {
    const bool one_bit = plan.is("one_bit");
    optimizer_ = one_bit ? make_optimizer(parallel_, "one_bit", 2) : make_optimizer(parallel_, "dense", 0);
  }

  void run() {
    for (step_ = 0; step_ < plan_.steps; ++step_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const bool act = victim_ && step_ == plan_.at_step;
      if (act && (plan_.action == "leave" || plan_.action == "join")) {
        meet_fault(plan_.action);
        break;
      }
      if (act && !plan_.between_steps()) meet(plan_.action);
      train();
      if (act && plan_.between_steps()) meet(plan_.action);
      collective();
    }
    if (plan_.action == "join") parallel_.join([this] { optimizer_->step(); });
    std::printf("STATE %s\n", state_text(parallel_, *optimizer_, "xmv").c_str());
  }

 private:
  torch::nn::Module& prepared() {
    fill(*net_);
    if (victim_ && plan_.is("dtype")) net_->to(torch::kDouble);
    return *net_;
  }

  DataParallelSettings settings() const {
    return {.bucket_bytes = victim_ && plan_.is("setting") ? 16384 : 8192, .first_bucket_bytes = 8192};
  }

  void meet(const std::string& action) {
    if (action.rfind("nap:", 0) != 0) return meet_fault(action);
    InBackward::callback = [action] {
      InBackward::callback = nullptr;
      meet_fault("sleep:" + action.substr(4));
    };
  }

  void train() {
    optimizer_->zero_grad();
    const torch::Tensor x = train::noise(static_cast<std::uint64_t>(step_ * 100 + parallel_.rank()), {8, 64});
    (net_->forward(x) - x.flip(0)).square().mean().backward();
    optimizer_->step();
  }

  void collective() {
    if (plan_.is("mean")) parallel_.all_reduce_mean(torch::ones({1}));
    if (plan_.is("barrier")) parallel_.barrier();
    if (plan_.is("save") || (plan_.is("load") && step_ == 0))
      save_checkpoint(plan_.directory(), parallel_, *optimizer_, {.step = step_});
    if (plan_.is("load")) load_checkpoint(plan_.directory(), parallel_, *optimizer_);
  }

  Plan plan_;
  bool victim_;
  PausingNet net_;
  DataParallel parallel_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::int64_t step_ = 0;
};

}  // namespace
}  // namespace thinwire::tests

int main(int argc, char** argv) {
  using namespace thinwire;
  if (argc != 6) {
    std::fprintf(stderr, "train_rank: five arguments; got %d, see the head of its source\n", argc - 1);
    return 2;
  }
  const tests::Plan plan{argv[1], std::atoll(argv[2]), std::atoi(argv[3]), argv[4], std::atoll(argv[5])};
  return testing_faults::run_rank([&] {
    const std::unique_ptr<World> world = init_from_env();
    tests::Trainer(*world, plan).run();
  });
}
