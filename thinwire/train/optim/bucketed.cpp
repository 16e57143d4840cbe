#include "thinwire/train/optim/bucketed.hpp"

#include <ATen/core/grad_mode.h>

#include <unordered_map>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/codec/codec.hpp"

namespace thinwire::train {
namespace {

constexpr const char* kEmbeddingCodec = "int8:block=128";

std::unordered_map<const void*, int> index_by_identity(const std::vector<Parameter>& parameters) {
  std::unordered_map<const void*, int> index;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    index[parameters[i].tensor.unsafeGetTensorImpl()] = static_cast<int>(i);
  }
  return index;
}

std::size_t tensors_in(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  std::size_t count = 0;
  for (const auto& group : groups) count += group.params().size();
  return count;
}

}  // namespace

std::vector<torch::optim::OptimizerParamGroup> all_parameters(DataParallel& parallel) {
  std::vector<torch::Tensor> tensors;
  for (const Parameter& parameter : parallel.reducer().parameters()) tensors.push_back(parameter.tensor);
  return {torch::optim::OptimizerParamGroup(std::move(tensors))};
}

const std::vector<torch::optim::OptimizerParamGroup>& with_own_options(
    std::vector<torch::optim::OptimizerParamGroup>& merged,
    const std::vector<torch::optim::OptimizerParamGroup>& given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].has_options()) merged[i].set_options(given[i].options().clone());
  }
  return merged;
}

Bucketed::Bucketed(Reducer& reducer, const std::vector<torch::optim::OptimizerParamGroup>& groups,
                   const std::vector<Fact>& settings)
    : reducer_(reducer), groups_(groups), tensors_(tensors_in(groups)), group_of_(reducer.parameters().size(), -1) {
  const auto index = index_by_identity(reducer.parameters());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const torch::Tensor& tensor : groups[group].params()) {
      if (tensor.numel() == 0) continue;  // nothing to exchange, nothing to update
      const auto found = index.find(tensor.unsafeGetTensorImpl());
      if (found == index.end()) {
        fail(ErrorCode::kInvalidArgument,
             {"train::optimizer", "tensor in parameter group " + std::to_string(group),
              "one that is no parameter of the module", "parameters of DataParallel's module",
              "building the groups from module.named_parameters()"});
      }
      int& of = group_of_[found->second];
      if (of >= 0 && of != static_cast<int>(group)) {
        fail(ErrorCode::kInvalidArgument,
             {"train::optimizer", "parameter " + parameter(found->second).name,
              "in groups " + std::to_string(of) + " and " + std::to_string(group), "one group for each parameter", ""});
      }
      of = static_cast<int>(group);
    }
  }
  std::vector<int> keys = group_of_;
  for (int& key : keys) key = key < 0 ? static_cast<int>(groups.size()) : key;
  reducer_.set_optimizer_groups(keys, settings);
}

std::span<float> Bucketed::values(std::size_t i) const {
  const at::Tensor& tensor = parameter(i).tensor;
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::span<const float> Bucketed::gradient(std::size_t i) const {
  const at::Tensor& tensor = reducer_.gradient(static_cast<int>(i));
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

torch::Tensor Bucketed::step(const torch::optim::Optimizer::LossClosure& closure, const std::function<void()>& update,
                             const std::function<NamedTensors()>& state) const {
  if (tensors_in(groups_) != tensors_) {
    fail(ErrorCode::kState, {"train::optimizer", "parameter groups", "some that were added later",
                             "those that the optimizer was made with", "an optimizer made with all groups"});
  }
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode enable(true);
    loss = closure();
  }
  const at::NoGradGuard no_grad;
  const StepOutcome* outcome = reducer_.outcome();
  if (outcome == nullptr) return loss;
  const double begin = monotonic_seconds();
  const bool skip = outcome->skip();
  if (!skip) update();
  reducer_.commit(monotonic_seconds() - begin);
  if (!skip && reducer_.parity_due()) reducer_.check_parity(state());
  return loss;
}

std::vector<ParameterRoute> gradient_routes(const std::vector<Parameter>& parameters, const std::string& codec,
                                            bool allow_one_bit) {
  const auto made = codec::make_codec(codec);
  if (!allow_one_bit && made->text().rfind("one_bit", 0) == 0) {
    fail(ErrorCode::kInvalidArgument, {"train::optimizer", "codec for gradients under a live variance", codec,
                                       "fp32, bf16, int8 or int4 (one bit does not converge there)",
                                       "OneBitAdam, which sends one bit of the momentum once its variance is frozen"});
  }
  std::vector<ParameterRoute> routes(parameters.size());
  if (made->lossless()) return routes;
  if (!parameters.front().tensor.device().is_cpu()) {
    fail(ErrorCode::kUnavailable, {"train::optimizer", "codec on device " + parameters.front().tensor.device().str(),
                                   codec, "fp32 (this build has codec kernels for the CPU only)", "codec = \"fp32\""});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind == ParameterKind::kBody) routes[i] = {Route::kFeedback, made->text()};
    if (parameters[i].kind == ParameterKind::kEmbedding) routes[i] = {Route::kFeedback, kEmbeddingCodec};
  }
  return routes;
}

}  // namespace thinwire::train
