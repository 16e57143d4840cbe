#include "thinwire/train/ddp/data_parallel.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/codec/codec.hpp"
#include "thinwire/train/ddp/agreement.hpp"
#include "thinwire/train/ddp/parameters.hpp"
#include "thinwire/train/ddp/reducer.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"
#include "thinwire/train/optim/bucketed.hpp"
#include "thinwire/watch/jsonl.hpp"

namespace thinwire::train {
namespace {

constexpr const char* kPlace = "train::DataParallel";
constexpr std::int64_t kLargestBucket = 25 << 20;  // Gloo's gather falls off a cliff above

void check(const DataParallelSettings& settings) {
  const auto require = [](bool good, const char* name, std::int64_t got, const std::string& want) {
    if (!good) fail(ErrorCode::kInvalidArgument, {kPlace, name, std::to_string(got), want, ""});
  };
  const auto bucket = [&](const char* name, std::int64_t bytes) {
    require(bytes >= 4 * codec::kUnitElements && bytes <= kLargestBucket, name, bytes,
            std::to_string(4 * codec::kUnitElements) + " to " + std::to_string(kLargestBucket));
  };
  bucket("bucket_bytes", settings.bucket_bytes);
  bucket("first_bucket_bytes", settings.first_bucket_bytes);
  require(settings.parity_every >= 0, "parity_every", settings.parity_every, "0 (never) or more");
  if (!(settings.max_grad_norm >= 0)) {
    fail(ErrorCode::kInvalidArgument,
         {kPlace, "max_grad_norm", std::to_string(settings.max_grad_norm), "0 (no clipping) or more", ""});
  }
  codec::make_codec(settings.codec);
}

constexpr const char* kMean = "mean of the caller's values";  // where a rank is missing
constexpr const char* kOwnCheck = "model and settings";

std::vector<Fact> facts_of(const std::vector<Parameter>& parameters, const torch::nn::Module& module,
                           const DataParallelSettings& settings) {
  std::vector<Fact> facts{{kOwnCheck, "accepted"},
                          {"setting codec", settings.codec},
                          {"setting bucket_bytes", std::to_string(settings.bucket_bytes)},
                          {"setting first_bucket_bytes", std::to_string(settings.first_bucket_bytes)},
                          {"setting max_grad_norm", std::to_string(settings.max_grad_norm)},
                          {"setting clip_mode", settings.clip_mode == ClipMode::kExact ? "exact" : "predicted"},
                          {"setting broadcast_buffers", settings.broadcast_buffers ? "true" : "false"},
                          {"setting parity_every", std::to_string(settings.parity_every)}};
  const std::vector<Fact> model = model_facts(parameters, module);
  facts.insert(facts.end(), model.begin(), model.end());
  return facts;
}

// Collects, compares and copies before the reducer cuts anything.
std::vector<Parameter> agreed_parameters(const torch::nn::Module& module, comm::World& world,
                                         const DataParallelSettings& settings) {
  std::vector<Parameter> parameters;
  std::vector<Fact> facts;
  std::exception_ptr refused;
  try {
    check(settings);
    parameters = collect_parameters(module, {settings.dense_parameters, settings.embedding_parameters});
    facts = facts_of(parameters, module, settings);
  } catch (const Error& error) {  // the others must hear of it, or they would wait for this rank
    refused = std::current_exception();
    facts = {{kOwnCheck, error.what()}};
  }
  const WaitingScope waiting(world.progress());
  require_same_on_all_ranks(world.hop1(), kPlace, facts);
  if (refused) std::rethrow_exception(refused);
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters) {
    world.hop1().broadcast(parameter.tensor.detach(), 0, {"parameters"})->wait();
  }
  return parameters;
}

}  // namespace

struct DataParallel::Impl {
  Impl(torch::nn::Module& wrapped, comm::World& the_world, DataParallelSettings the_settings)
      : module(wrapped),
        world(the_world),
        settings(std::move(the_settings)),
        reducer(agreed_parameters(module, world, settings), module.buffers(), world, settings) {
    reducer.set_routes(gradient_routes(reducer.parameters(), settings.codec, true));
    if (!settings.step_log.empty()) {
      log = std::make_unique<watch::JsonlWriter>(path_of_rank(settings.step_log, world.rank(), world.size()));
      reducer.set_on_report([this](const schema::StepReport& report) { log->append(schema::to_json_line(report)); });
    }
  }

  // What our own optimizers do inside their update: dense gradients are clipped after the exchange.
  void clip_gradients() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < reducer.parameters().size(); ++i) {
      const float factor = reducer.gradient_factor(static_cast<int>(i));
      at::Tensor& gradient = reducer.parameters()[i].tensor.mutable_grad();
      if (factor != 1.0F && gradient.defined()) gradient.mul_(factor);
    }
  }

  torch::nn::Module& module;
  comm::World& world;
  DataParallelSettings settings;
  Reducer reducer;
  std::unique_ptr<watch::JsonlWriter> log;
};

DataParallel::DataParallel(torch::nn::Module& module, comm::World& world, DataParallelSettings settings)
    : impl_(std::make_unique<Impl>(module, world, std::move(settings))) {
  sync_buffers();
}

DataParallel::~DataParallel() = default;

int DataParallel::rank() const {
  return impl_->world.rank();
}
int DataParallel::size() const {
  return impl_->world.size();
}
torch::nn::Module& DataParallel::module() const {
  return impl_->module;
}
const DataParallelSettings& DataParallel::settings() const {
  return impl_->settings;
}

DataParallel::NoSync::NoSync(Reducer& reducer) : reducer_(reducer), before_(reducer.sync()) {
  reducer_.set_sync(false);
}
DataParallel::NoSync::~NoSync() {
  reducer_.set_sync(before_);
}
DataParallel::NoSync DataParallel::no_sync() {
  return NoSync(impl_->reducer);
}

bool DataParallel::commit() {
  const StepOutcome* outcome = impl_->reducer.outcome();
  if (outcome == nullptr) return false;
  if (impl_->settings.codec.rfind("one_bit", 0) == 0) {
    fail(ErrorCode::kInvalidArgument, {"train::DataParallel::commit", "codec of gradients", impl_->settings.codec,
                                       "fp32, bf16, int8 or int4 with an optimizer that is not ours",
                                       "thinwire::OneBitAdam, or thinwire::Sgd without momentum"});
  }
  if (impl_->reducer.parity_due()) impl_->reducer.check_parity({});
  const bool skip = outcome->skip();
  if (!skip) impl_->clip_gradients();
  impl_->reducer.commit(0);
  return !skip;
}

void DataParallel::sync_buffers() {
  impl_->reducer.run_collective([this](comm::World&) {
    const at::NoGradGuard no_grad;
    impl_->reducer.broadcast_buffers();
  });
}

void DataParallel::all_reduce_mean(at::Tensor values) {
  const bool reducible = values.defined() && values.is_contiguous() &&
                         (values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble);
  const std::string got = !values.defined() ? "undefined"
                                            : c10::str(values.dtype(), " ", values.sizes(),
                                                       values.is_contiguous() ? "" : ", not contiguous");
  // One rank's mistake must end the call on all of them: a collective that fits on some only would end the process.
  std::vector<std::string> all;
  impl_->reducer.run_collective([&](comm::World& world) { all = gather_texts(world.hop1(), got, kMean); });
  if (std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one != all[0]; })) {
    std::string each;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      each += (rank == 0 ? "rank " : "; rank ") + std::to_string(rank) + ": " + all[rank];
    fail(ErrorCode::kMismatch, {"train::all_reduce_mean", "tensor differs between ranks", each,
                                "the same shape and dtype on every rank", ""});
  }
  if (!reducible) {
    fail(ErrorCode::kInvalidArgument,
         {"train::all_reduce_mean", "tensor", got, "a contiguous tensor of float32 or float64", ""});
  }
  const at::NoGradGuard no_grad;
  impl_->reducer.run_collective(
      [&](comm::World& world) { world.hop1().all_reduce(values, comm::ReduceOp::kSum, {kMean})->wait(); });
  values.div_(size());
}

void DataParallel::barrier() {
  impl_->reducer.run_collective([](comm::World& world) { world.hop1().barrier({"barrier"})->wait(); });
}

std::int64_t DataParallel::join(const std::function<void()>& step) {
  return impl_->reducer.join(step);
}
const schema::StepReport& DataParallel::last_step() const {
  return impl_->reducer.last_report();
}

std::int64_t DataParallel::sent_bytes() const {
  return impl_->reducer.sent_bytes();
}

watch::Timeline& DataParallel::timeline() {
  return impl_->reducer.timeline();
}
Reducer& DataParallel::reducer() {
  return impl_->reducer;
}

}  // namespace thinwire::train
