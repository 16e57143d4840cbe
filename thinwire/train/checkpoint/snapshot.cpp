#include "thinwire/train/checkpoint/snapshot.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/util/Type.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <map>
#include <mutex>
#include <sstream>
#include <typeinfo>

#include "thinwire/base/error.hpp"
#include "thinwire/train/ddp/reducer.hpp"
#include "thinwire/train/optim/archive.hpp"

namespace thinwire::train {
namespace {

constexpr const char* kPlace = "train::load_checkpoint";
constexpr const char* kFormat = "thinwire checkpoint 1";

// Buckets never mix groups, so the layout and every residual depend on who is in which; of torch's own optimizers the
// state does.
std::vector<Fact> optimizer_facts(const std::vector<Parameter>& parameters, const torch::optim::Optimizer& optimizer) {
  std::map<const void*, std::string> group_of;  // by the tensor's identity
  const auto& groups = optimizer.param_groups();
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const at::Tensor& tensor : groups[group].params())
      group_of[tensor.unsafeGetTensorImpl()] = std::to_string(group);
  }
  std::vector<Fact> facts{{"optimizer", c10::demangle(typeid(optimizer).name())},
                          {"optimizer groups", std::to_string(groups.size())}};
  for (const Parameter& parameter : parameters) {
    const auto found = group_of.find(parameter.tensor.unsafeGetTensorImpl());
    facts.push_back({"optimizer group of " + parameter.name, found == group_of.end() ? "none" : found->second});
  }
  return facts;
}

// What a checkpoint only fits to, in words that a person can compare: what the layout and the residuals depend on.
// Clipping, logging and the learning rate may change with a resume.
std::string facts_of(DataParallel& parallel, const torch::optim::Optimizer& optimizer) {
  std::string facts = "world size " + std::to_string(parallel.size()) + "\nrank " + std::to_string(parallel.rank()) +
                      "\ncodec " + parallel.settings().codec + "\nbucket bytes " +
                      std::to_string(parallel.settings().bucket_bytes) + ", first " +
                      std::to_string(parallel.settings().first_bucket_bytes) + "\n";
  const std::vector<Parameter>& parameters = parallel.reducer().parameters();
  for (const auto& some : {model_facts(parameters, parallel.module()), optimizer_facts(parameters, optimizer)}) {
    for (const Fact& fact : some) facts += fact.name + " " + fact.value + "\n";
  }
  return facts;
}

void require_same_facts(const std::string& saved, const std::string& wanted) {
  std::istringstream a(saved);
  std::istringstream b(wanted);
  std::string got;
  std::string want;
  while (saved != wanted) {
    const bool more_a = static_cast<bool>(std::getline(a, got));
    const bool more_b = static_cast<bool>(std::getline(b, want));
    if (more_a && more_b && got == want) continue;
    fail(ErrorCode::kMismatch, {kPlace, "the checkpoint is of another run", more_a ? got : "nothing more",
                                more_b ? want : "nothing more", "the same program, flags and number of ranks"});
  }
}

std::vector<at::Tensor> parameter_tensors(DataParallel& parallel) {
  std::vector<at::Tensor> tensors;
  for (const Parameter& parameter : parallel.reducer().parameters()) tensors.push_back(parameter.tensor.detach());
  return tensors;
}

at::Tensor tensor_of(std::span<const float> values) {
  const at::Tensor tensor =
      at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kFloat));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

at::Tensor read_tensor(torch::serialize::InputArchive& archive, const std::string& key) {
  at::Tensor value;
  if (!archive.try_read(key, value, true)) {
    fail(ErrorCode::kCorrupt, {kPlace, "entry " + key, "nothing", "a tensor", "an older checkpoint"});
  }
  return value;
}

void write_residuals(torch::serialize::OutputArchive& archive, ExchangeSet& exchanges) {
  const std::vector<GradientState>& states = exchanges.gradients();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].worker) archive.write("e_" + std::to_string(i), tensor_of(states[i].worker->committed()), true);
  }
  const std::vector<ServerResidual*> server = exchanges.server_residuals();
  for (std::size_t k = 0; k < server.size(); ++k) {
    archive.write("s_" + std::to_string(k), tensor_of(server[k]->residual->committed()), true);
  }
}

void read_residual(torch::serialize::InputArchive& archive, const std::string& key, codec::ErrorFeedback& residual) {
  const at::Tensor value = read_tensor(archive, key);
  if (value.numel() != residual.size()) {
    fail(ErrorCode::kMismatch, {kPlace, "length of residual " + key, std::to_string(value.numel()),
                                std::to_string(residual.size()), "the codec and buckets that were saved"});
  }
  residual.restore({value.const_data_ptr<float>(), static_cast<std::size_t>(value.numel())});
}

void read_residuals(torch::serialize::InputArchive& archive, ExchangeSet& exchanges) {
  std::vector<GradientState>& states = exchanges.gradients();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].worker) read_residual(archive, "e_" + std::to_string(i), *states[i].worker);
  }
  const std::vector<ServerResidual*> server = exchanges.server_residuals();
  for (std::size_t k = 0; k < server.size(); ++k) {
    read_residual(archive, "s_" + std::to_string(k), *server[k]->residual);
  }
}

void write_progress(torch::serialize::OutputArchive& archive, Reducer& reducer) {
  const Reducer::Progress progress = reducer.progress();
  write_int(archive, "committed_steps", progress.committed_steps);
  write_int(archive, "opened_steps", progress.opened_steps);
  write_int(archive, "ordered", progress.ordered ? 1 : 0);
  write_ints(archive, "order", {progress.order.begin(), progress.order.end()});
  const NormPredictor& predictor = reducer.pipeline().predictor();
  write_double(archive, "norm", predictor.norm());
  write_int(archive, "norm_buckets", static_cast<std::int64_t>(predictor.bucket_norms().size()));
  for (std::size_t i = 0; i < predictor.bucket_norms().size(); ++i) {
    write_double(archive, "norm_" + std::to_string(i), predictor.bucket_norms()[i]);
  }
}

void read_progress(torch::serialize::InputArchive& archive, Reducer& reducer) {
  Reducer::Progress progress;
  progress.committed_steps = read_int(archive, "committed_steps");
  progress.opened_steps = read_int(archive, "opened_steps");
  progress.ordered = read_int(archive, "ordered") != 0;
  for (const std::int64_t parameter : read_ints(archive, "order"))
    progress.order.push_back(static_cast<int>(parameter));
  reducer.restore(progress);
  std::vector<double> norms;
  for (std::int64_t i = 0; i < read_int(archive, "norm_buckets"); ++i) {
    norms.push_back(read_double(archive, "norm_" + std::to_string(i)));
  }
  reducer.pipeline().predictor().restore(read_double(archive, "norm"), std::move(norms));
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

std::string snapshot(DataParallel& parallel, const torch::optim::Optimizer& optimizer, const TrainerState& state,
                     const std::string& set) {
  const at::NoGradGuard no_grad;
  torch::serialize::OutputArchive archive;
  archive.write("format", c10::IValue(kFormat));
  archive.write("facts", c10::IValue(facts_of(parallel, optimizer)));
  archive.write("extra", c10::IValue(state.extra));
  archive.write("set", c10::IValue(set));
  write_int(archive, "step", state.step);
  write_tensors(archive, "x", parameter_tensors(parallel));
  write_tensors(archive, "buffer", parallel.module().buffers());
  archive.write("generator", generator_state(), true);
  write_progress(archive, parallel.reducer());
  write_residuals(archive, parallel.reducer().exchanges());
  torch::serialize::OutputArchive nested(archive.compilation_unit());
  optimizer.save(nested);
  archive.write("optimizer", nested);
  std::ostringstream bytes;
  archive.save_to(bytes);
  return std::move(bytes).str();
}

struct Restore::Impl {
  torch::serialize::InputArchive archive;
  std::string set;
};

Restore::Restore(const std::string& bytes, DataParallel& parallel, const torch::optim::Optimizer& optimizer)
    : impl_(std::make_unique<Impl>()) {
  c10::IValue value;
  try {
    impl_->archive.load_from(bytes.data(), bytes.size());
  } catch (const std::exception& error) {
    fail(ErrorCode::kCorrupt,
         {kPlace, "the archive in the checkpoint does not open", error.what(), "", "an older one"});
  }
  if (!impl_->archive.try_read("format", value) || !value.isString() || value.toStringRef() != kFormat) {
    fail(ErrorCode::kMismatch, {kPlace, "format", value.isString() ? value.toStringRef() : "another archive", kFormat,
                                "the release of thinwire that wrote it"});
  }
  if (!impl_->archive.try_read("facts", value) || !value.isString()) {
    fail(ErrorCode::kCorrupt, {kPlace, "entry facts", "nothing", "text", "an older checkpoint"});
  }
  require_same_facts(value.toStringRef(), facts_of(parallel, optimizer));
  if (!impl_->archive.try_read("set", value) || !value.isString()) {
    fail(ErrorCode::kCorrupt, {kPlace, "entry set", "nothing", "text", "an older checkpoint"});
  }
  impl_->set = value.toStringRef();
}

Restore::~Restore() = default;

const std::string& Restore::set() const {
  return impl_->set;
}

TrainerState Restore::apply(DataParallel& parallel, torch::optim::Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  torch::serialize::InputArchive& archive = impl_->archive;
  Reducer& reducer = parallel.reducer();
  torch::serialize::InputArchive nested;
  if (!archive.try_read("optimizer", nested)) {
    fail(ErrorCode::kCorrupt, {kPlace, "entry optimizer", "nothing", "an archive", "an older checkpoint"});
  }
  optimizer.load(nested);  // first: it refuses the state of another optimizer before it changes anything
  std::vector<at::Tensor> parameters = parameter_tensors(parallel);
  read_tensors(archive, "x", reducer.parameters(), parameters);
  std::vector<at::Tensor> buffers = parallel.module().buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    buffers[i].copy_(read_tensor(archive, "buffer_" + std::to_string(i)));
  read_progress(archive, reducer);
  read_residuals(archive, reducer.exchanges());
  set_generator_state(read_tensor(archive, "generator"));
  c10::IValue extra;
  TrainerState state{.step = read_int(archive, "step")};
  if (archive.try_read("extra", extra) && extra.isString()) state.extra = extra.toStringRef();
  return state;
}

}  // namespace thinwire::train
