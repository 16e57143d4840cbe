#include "bench/step/contender.hpp"

#include <torch/torch.h>

#include <vector>

#include "bench/step/byte_transformer.hpp"
#include "thinwire/thinwire.hpp"

namespace thinwire::bench {
namespace {

constexpr double kLearningRate = 1e-3;
constexpr std::int64_t kFreezeStep = 4;  // the warm-up of the bench is longer: one_bit is measured past its freeze

// The same parameters for every contender, as torch.manual_seed(0) gives the Python ones theirs.
ByteTransformer make_model() {
  torch::manual_seed(0);
  ByteTransformer model;
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : model->parameters()) count += parameter.numel();
  if (count != kParameters)
    fail(ErrorCode::kInternal, {"bench step", "parameters", std::to_string(count), std::to_string(kParameters), ""});
  return model;
}

torch::Tensor step_of(ByteTransformer& model, torch::optim::Optimizer& optimizer, const torch::Tensor& batch) {
  torch::Tensor loss = loss_of(model, batch);
  loss.backward();
  optimizer.step();
  optimizer.zero_grad();
  return loss;
}

class PlainAdam : public Contender {
 public:
  PlainAdam() : model_(make_model()), optimizer_(model_->parameters(), torch::optim::AdamOptions(kLearningRate)) {}

  torch::Tensor step(const torch::Tensor& batch) override { return step_of(model_, optimizer_, batch); }
  std::string stage() const override { return "dense"; }

 private:
  ByteTransformer model_;
  torch::optim::Adam optimizer_;
};

// Over DataParallel; `Optimizer` is AdamW or OneBitAdam.
template <typename Optimizer, typename Settings>
class Parallel : public Contender {
 public:
  Parallel(comm::World& world, const std::string& codec, const Settings& settings)
      : model_(make_model()), parallel_(*model_, world, with_codec(codec)), optimizer_(parallel_, settings) {}

  torch::Tensor step(const torch::Tensor& batch) override { return step_of(model_, optimizer_, batch); }
  std::string stage() const override { return parallel_.last_step().optimizer_stage; }

 private:
  static DataParallelSettings with_codec(const std::string& codec) {
    DataParallelSettings settings;
    settings.codec = codec;
    return settings;
  }

  ByteTransformer model_;
  DataParallel parallel_;
  Optimizer optimizer_;
};

using ParallelAdam = Parallel<AdamW, train::AdamWSettings>;
using ParallelOneBit = Parallel<OneBitAdam, train::OneBitAdamSettings>;

train::AdamWSettings adam() {
  train::AdamWSettings settings;
  settings.lr = kLearningRate;
  settings.weight_decay = 0;
  return settings;
}

train::OneBitAdamSettings one_bit_adam() {
  train::OneBitAdamSettings settings;
  settings.lr = kLearningRate;
  settings.weight_decay = 0;
  settings.freeze_step = kFreezeStep;
  return settings;
}

// A world of one for the ranks that train alone.
class Alone : public Contender {
 public:
  Alone() : worlds_(comm::make_local_worlds(1)), inner_(*worlds_.front(), "fp32", adam()) {}
  torch::Tensor step(const torch::Tensor& batch) override { return inner_.step(batch); }
  std::string stage() const override { return inner_.stage(); }

 private:
  std::vector<std::unique_ptr<comm::World>> worlds_;
  ParallelAdam inner_;
};

}  // namespace

std::unique_ptr<Contender> make_contender(const std::string& name, comm::World& world) {
  if (name == "compute:adam") return std::make_unique<PlainAdam>();
  if (name == "compute:adamw") return std::make_unique<Alone>();
  if (name == "dense") return std::make_unique<ParallelAdam>(world, "fp32", adam());
  if (name == "bf16" || name == "int4") return std::make_unique<ParallelAdam>(world, name, adam());
  if (name == "one_bit") return std::make_unique<ParallelOneBit>(world, "fp32", one_bit_adam());
  fail(ErrorCode::kInvalidArgument, {"bench step", "contender", name, "", ""});
}

}  // namespace thinwire::bench
