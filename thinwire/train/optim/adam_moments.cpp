#include "thinwire/train/optim/adam_moments.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/archive.hpp"
#include "thinwire/train/optim/update_kernels.hpp"

namespace thinwire::train {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

void require_range(const char* name, double value, double low, double high) {
  if (value >= low && value < high) return;
  fail(ErrorCode::kInvalidArgument, {"train::optimizer", name, std::to_string(value),
                                     "a number from " + std::to_string(low) + " to below " + std::to_string(high), ""});
}

}  // namespace

AdamMoments::AdamMoments(const std::vector<Parameter>& parameters) : steps_(parameters.size(), 0) {
  for (const Parameter& parameter : parameters) {
    momentum_.push_back(at::zeros_like(parameter.tensor).set_requires_grad(false));
    variance_.push_back(at::zeros_like(parameter.tensor).set_requires_grad(false));
  }
}

void AdamMoments::update(const Bucketed& bucketed, std::size_t i, const AdamWSettings& settings) {
  adamw_update({bucketed.values(i), floats(momentum_[i]), floats(variance_[i]), bucketed.gradient(i)},
               {.lr = settings.lr,
                .beta1 = settings.beta1,
                .beta2 = settings.beta2,
                .eps = settings.eps,
                .weight_decay = settings.weight_decay,
                .step = ++steps_[i],
                .gradient_factor = bucketed.reducer().gradient_factor(static_cast<int>(i))});
}

Bucketed::NamedTensors AdamMoments::named(const Bucketed& bucketed) const {
  Bucketed::NamedTensors tensors;
  for (std::size_t i = 0; i < momentum_.size(); ++i) {
    tensors.emplace_back("m of " + bucketed.parameter(i).name, momentum_[i]);
    tensors.emplace_back("v of " + bucketed.parameter(i).name, variance_[i]);
  }
  return tensors;
}

void AdamMoments::save(torch::serialize::OutputArchive& archive) const {
  write_tensors(archive, "m", momentum_);
  write_tensors(archive, "v", variance_);
  write_ints(archive, "steps", steps_);
}

void AdamMoments::load(torch::serialize::InputArchive& archive, const std::vector<Parameter>& parameters) {
  const std::vector<std::int64_t> steps = read_ints(archive, "steps");
  if (steps.size() != steps_.size()) {
    fail(ErrorCode::kMismatch, {"train::archive", "number of parameters", std::to_string(steps.size()),
                                std::to_string(steps_.size()), "the model that was saved"});
  }
  read_tensors(archive, "m", parameters, momentum_);
  read_tensors(archive, "v", parameters, variance_);
  steps_ = steps;
}

std::vector<Fact> facts_of(const AdamWSettings& settings, std::size_t group) {
  const auto fact = [&](const char* name, double value) {
    return Fact{name + (" of parameter group " + std::to_string(group)), c10::str(value)};
  };
  return {fact("lr", settings.lr), fact("beta1", settings.beta1), fact("beta2", settings.beta2),
          fact("eps", settings.eps), fact("weight_decay", settings.weight_decay)};
}

void check_adam(const AdamWSettings& settings) {
  constexpr double kAny = 1e30;
  require_range("lr", settings.lr, 0, kAny);
  require_range("beta1", settings.beta1, 0, 1);
  require_range("beta2", settings.beta2, 0, 1);
  require_range("eps", settings.eps, 0, kAny);
  require_range("weight_decay", settings.weight_decay, 0, kAny);
}

void require_kind(torch::serialize::InputArchive& archive, const std::string& kind) {
  c10::IValue value;
  if (archive.try_read("optimizer", value) && value.isString() && value.toStringRef() == kind) return;
  fail(ErrorCode::kMismatch,
       {"train::archive", "optimizer in the archive", value.isString() ? value.toStringRef() : "none of ours", kind,
        "the optimizer that wrote it"});
}

}  // namespace thinwire::train
