// What a reducer does between steps: takes the outcome, changes routes and cuts, reports, compares, goes into
// checkpoints.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/hash.hpp"
#include "thinwire/base/log.hpp"
#include "thinwire/train/ddp/buffers.hpp"
#include "thinwire/train/ddp/reducer.hpp"

namespace thinwire::train {

// ---- between backward and the next one

const StepOutcome* Reducer::outcome() {
  require_hooks();
  const bool missed = hooks_->hook_thawed();
  if (state_ == State::kBackward) drop_open_step();
  if (state_ == State::kIdle && missed && sync_) {  // no hook of ours was there to open the step
    const at::NoGradGuard no_grad;
    open_step();
    take_missing_gradients();
    finish_exchange(comm::flag::kActive);
  }
  if (state_ == State::kExchanged && !pipeline_.outcome().skip() && given_up()) state_ = State::kIdle;
  if (state_ == State::kIdle && std::exchange(accumulated_, false)) {
    fail(ErrorCode::kState,
         {"train::Reducer", "a step", "gradients that were only accumulated, under no_sync()",
          "a last backward without it, which sends the sum", "ending no_sync() one backward earlier"});
  }
  if (state_ == State::kExchanged) return &pipeline_.outcome();
  ++idle_steps_;
  return nullptr;
}

// Moving or converting the module makes autograd forget its accumulators and our hooks with them.
void Reducer::require_hooks() const {
  const int lost = hooks_->lost();
  if (lost < 0) return;
  fail(ErrorCode::kState,
       {"train::Reducer", "parameter " + parameters_[lost].name, "moved or converted after DataParallel was made",
        "a module that stays as it is", "module.to(...) before DataParallel"});
}

// True when zero_grad() has cleared every gradient since the exchange. Throws Error kState when one was replaced by
// something else than a gradient of its parameter.
bool Reducer::given_up() const {
  std::int64_t used = 0;
  std::int64_t cleared = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    used += used_[i] != 0 ? 1 : 0;
    cleared += used_[i] != 0 && !parameters_[i].tensor.grad().defined() ? 1 : 0;
  }
  if (used > 0 && cleared == used) return true;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    if (used_[i] == 0) continue;
    if (gradient.defined() && gradient.sizes() == parameters_[i].tensor.sizes() && gradient.is_contiguous() &&
        gradient.scalar_type() == at::kFloat) {
      continue;
    }
    fail(ErrorCode::kState,
         {"train::Reducer", "gradient of " + parameters_[i].name + " between backward and step",
          gradient.defined() ? c10::str(gradient.sizes(), " ", gradient.dtype()) : "none",
          c10::str("the contiguous float32 tensor of ", parameters_[i].tensor.sizes(), " that the exchange left"),
          "changing its values in place"});
  }
  return false;
}

float Reducer::gradient_factor(int parameter) const {
  return exchanges_.route(parameter).route == Route::kDense ? pipeline_.outcome().dense_factor : 1.0F;
}

void Reducer::commit(double update_s) {
  if (state_ != State::kExchanged) return;
  state_ = State::kIdle;
  make_report(update_s);
  if (pipeline_.outcome().skip()) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (used_[i] != 0) exchanges_.commit(static_cast<int>(i));
  }
  ++committed_steps_;
  if (!ordered_) adopt_arrival_order();
}

void Reducer::adopt_arrival_order() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (used_[i] != 0 || !parameters_[i].tensor.requires_grad()) continue;
    log(LogLevel::kWarning, "parameter " + parameters_[i].name +
                                " got no gradient on any rank in the first step; if another parameter was tied in its "
                                "place, give its module the shared tensor with register_parameter, instead of a "
                                "parameter of its own");
  }
  run_collective([this](comm::World& world) {
    const at::Tensor order =
        at::empty({static_cast<std::int64_t>(arrival_.size())}, at::TensorOptions().dtype(at::kInt));
    std::copy(arrival_.begin(), arrival_.end(), order.mutable_data_ptr<int>());
    world.hop1().broadcast(order, 0, {"arrival order"})->wait();
    const int* first = order.const_data_ptr<int>();
    ordered_ = true;
    exchanges_.cut({first, first + order.numel()}, wanted_);
  });
  pipeline_.forget_predictions();
}

void Reducer::set_optimizer_groups(const std::vector<int>& groups, const std::vector<Fact>& settings) {
  bool changed = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    changed = changed || parameters_[i].optimizer_group != groups[i];
    parameters_[i].optimizer_group = groups[i];
  }
  std::vector<Fact> facts = settings;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    facts.push_back({"optimizer group of " + parameters_[i].name, std::to_string(groups[i])});
  }
  require_same("train::optimizer", facts);
  if (!changed) return;
  run_collective(
      [&](comm::World&) { exchanges_.cut(std::vector<int>(exchanges_.layout().order), exchanges_.routes()); });
  pipeline_.forget_predictions();
}

void Reducer::set_routes(const std::vector<ParameterRoute>& routes) {
  wanted_ = routes;
  if (ordered_) exchanges_.set_routes(wanted_);
}

void Reducer::withdraw_momentum() {
  std::vector<ParameterRoute> routes = wanted_;
  for (ParameterRoute& route : routes) {
    if (route.route == Route::kMomentum) route = {};
  }
  if (routes != wanted_) set_routes(routes);
}

void Reducer::change_kinds(const std::vector<int>& parameters, ParameterKind kind,
                           const std::vector<ParameterRoute>& routes) {
  for (const int parameter : parameters) parameters_[parameter].kind = kind;
  wanted_ = routes;
  run_collective([&](comm::World&) {
    exchanges_.cut(std::vector<int>(exchanges_.layout().order), ordered_ ? wanted_ : exchanges_.routes());
  });
  pipeline_.forget_predictions();
}

std::vector<at::Tensor> Reducer::flush_residuals(const std::vector<int>& parameters) {
  std::vector<at::Tensor> residuals;
  for (const int parameter : parameters) {
    residuals.push_back(exchanges_.unsent(parameter));
    exchanges_.clear_residual(parameter);
  }
  run_collective([&](comm::World& world) {
    for (const at::Tensor& tensor : residuals) {
      world.hop1().all_reduce(tensor, comm::ReduceOp::kSum, {"flush of residuals"})->wait();
    }
  });
  return residuals;
}

// On the communication thread.
void Reducer::broadcast_buffers() {
  if (world_.size() > 1) broadcast_from_rank_zero(world_.hop1(), buffers_, opened_steps_);
}

// ---- what is reported and compared

std::int64_t Reducer::sent_bytes() const {
  return world_.hop1().counters().total() + world_.hop2().counters().total();
}

void Reducer::check_parity(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<NamedHash> hashes;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    hashes.push_back({name, hash_bytes({bytes, tensor.nbytes()})});
  };
  for (const Parameter& parameter : parameters_) add("x of " + parameter.name, parameter.tensor);
  for (const auto& [name, tensor] : tensors) add(name, tensor);
  run_collective([&](comm::World& world) { require_same_state(world.hop1(), committed_steps_, hashes); });
}

bool Reducer::parity_due() const {
  return settings_.parity_every > 0 && committed_steps_ > 0 && committed_steps_ % settings_.parity_every == 0;
}

void Reducer::make_report(double update_s) {
  const std::int64_t sent_now = sent_bytes();
  const std::int64_t sent = sent_now - std::exchange(sent_before_, sent_now);
  report_ = {};
  report_.step = opened_steps_;
  report_.optimizer_stage = stage_;
  report_.sent_bytes = sent;
  report_.exposed_s = exposed_s_;
  report_.update_s = update_s;
  report_.grad_norm = pipeline_.outcome().norm;
  report_.clip_factor = pipeline_.outcome().dense_factor;
  report_.skipped = pipeline_.outcome().skip();
  report_.buckets = pipeline_.reports();
  double dense_bytes = 0;
  for (std::size_t i = 0; i < report_.buckets.size(); ++i) {
    const Bucket& bucket = exchanges_.layout().buckets[i];
    report_.buckets[i].group = to_string(static_cast<ParameterKind>(bucket.key % 4));
    dense_bytes += 8.0 * static_cast<double>(bucket.elements) * (world_.size() - 1) / world_.size();
  }
  report_.compression_ratio = sent > 0 ? dense_bytes / static_cast<double>(sent) : 1.0;
  const double now = monotonic_seconds();
  timeline_.record({.kind = watch::EventKind::kUpdate, .step = opened_steps_, .begin_s = now - update_s, .end_s = now});
  if (on_report_) on_report_(report_);
}

// ---- checkpoints

Reducer::Progress Reducer::progress() const {
  return {.committed_steps = committed_steps_,
          .opened_steps = opened_steps_,
          .ordered = ordered_,
          .order = exchanges_.layout().order};
}

void Reducer::restore(const Progress& progress) {
  committed_steps_ = progress.committed_steps;
  opened_steps_ = progress.opened_steps;
  ordered_ = progress.ordered;
  run_collective([&](comm::World&) { exchanges_.cut(progress.order, ordered_ ? wanted_ : exchanges_.routes()); });
  pipeline_.forget_predictions();
}

}  // namespace thinwire::train
