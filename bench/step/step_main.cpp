// The C++ contenders of `thinwire bench step`. Started once per rank with torchrun's variables; answers lines
// "run CONTENDER STEPS" on standard input with one JSON line each (protocol: thinwire/cli/bench_workers.hpp).
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/step/byte_transformer.hpp"
#include "bench/step/contender.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::bench {
namespace {

constexpr int kInputs = 16;  // batches, used in turn

std::vector<torch::Tensor> inputs_of(int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(rank));
  std::vector<torch::Tensor> inputs;
  for (int i = 0; i < kInputs; ++i)
    inputs.push_back(torch::randint(0, kVocabulary, {kBatch, kTokens + 1}, generator, torch::kInt64));
  return inputs;
}

// Bytes this rank has sent: at the interface of its link if it has one of its own, else at its groups.
std::int64_t sent_bytes(comm::World& world) {
  const char* interface = std::getenv("THINWIRE_LINK_INTERFACE");
  if (interface == nullptr) return world.hop1().counters().total() + world.hop2().counters().total();
  const std::string path = "/sys/class/net/" + std::string(interface) + "/statistics/tx_bytes";
  std::int64_t bytes = -1;
  std::ifstream(path) >> bytes;
  if (bytes < 0) fail(ErrorCode::kIo, {"bench step", "cannot read " + path, "", "", ""});
  return bytes;
}

class Worker {
 public:
  explicit Worker(std::unique_ptr<comm::World> world) : world_(std::move(world)), inputs_(inputs_of(world_->rank())) {}

  std::string run(const std::string& name, int steps) {
    if (contenders_.count(name) == 0) contenders_[name] = make_contender(name, *world_);
    Contender& contender = *contenders_.at(name);
    std::string times;
    torch::Tensor loss;
    barrier();
    const std::int64_t before = sent_bytes(*world_);
    for (int i = 0; i < steps; ++i) {
      barrier();
      const double begin = monotonic_seconds();
      loss = contender.step(inputs_[static_cast<std::size_t>(i) % inputs_.size()]);
      times += (times.empty() ? "" : ", ") + std::to_string(monotonic_seconds() - begin);
    }
    barrier();
    const std::int64_t sent = sent_bytes(*world_) - before;
    const double value = loss.item<double>();
    return "{\"step_s\": [" + times + "], \"sent_bytes\": " + std::to_string(sent) +
           ", \"loss\": " + (std::isfinite(value) ? std::to_string(value) : "null") + ", \"stage\": \"" +
           contender.stage() + "\"}";
  }

 private:
  void barrier() { world_->hop1().barrier({"barrier"})->wait(); }

  std::unique_ptr<comm::World> world_;
  std::vector<torch::Tensor> inputs_;
  std::map<std::string, std::unique_ptr<Contender>> contenders_;
};

void answer_requests() {
  at::set_num_threads(1);
  Worker worker(comm::init_from_env());
  std::cout << "{\"ready\": true}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, name;
    int steps = 0;
    if (!(words >> verb >> name >> steps) || verb != "run" || steps < 1)
      fail(ErrorCode::kInvalidArgument, {"bench step", "request", line, "run CONTENDER STEPS", "thinwire bench step"});
    std::cout << worker.run(name, steps) << std::endl;
  }
}

}  // namespace
}  // namespace thinwire::bench

int main() {
  try {
    thinwire::bench::answer_requests();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
