#include "thinwire/train/ddp/reducer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/hash.hpp"
#include "thinwire/base/log.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"

namespace thinwire::train {
namespace {

ClipSettings clip_settings(const DataParallelSettings& settings) {
  return {.max_norm = settings.max_grad_norm, .predicted = settings.clip_mode == ClipMode::kPredicted};
}

// True when writing into `gradient` could change a tensor that autograd still uses.
bool shares_memory(const at::Tensor& gradient, const at::Tensor& incoming) {
  std::size_t own = 1;
  if (incoming.defined() && incoming.has_storage() &&
      incoming.unsafeGetTensorImpl() != gradient.unsafeGetTensorImpl() &&
      incoming.storage().is_alias_of(gradient.storage())) {
    own = 2;
  }
  return gradient.storage().use_count() > own;
}

bool aliases(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes();
}

}  // namespace

Reducer::Reducer(std::vector<Parameter> parameters, std::vector<at::Tensor> buffers, comm::World& world,
                 const DataParallelSettings& settings)
    : world_(world),
      settings_(settings),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      exchanges_(parameters_, world, {settings.bucket_bytes, settings.first_bucket_bytes}),
      pipeline_(exchanges_, world, timeline_, clip_settings(settings)),
      streams_(make_stream_order(parameters_.front().tensor.device())),
      thread_({.in_flight = [this] { return pipeline_.in_flight(); }, .advance = [this] { pipeline_.advance(); }}),
      wanted_(parameters_.size()),
      arrived_(parameters_.size()),
      undefined_(parameters_.size()),
      used_(parameters_.size(), 1),
      woke_(parameters_.size()) {
  hooks_ = std::make_unique<GradientHooks>(
      parameters_, [this](int parameter, const at::Tensor& incoming) { on_gradient(parameter, incoming); });
}

// A step that is open on one rank only would leave the others waiting: it is given up together, or, while an exception
// unwinds or after a failure, the groups are shut down so that nobody waits.
Reducer::~Reducer() {
  hooks_.reset();
  if (state_ != State::kBackward) return;
  try {
    if (std::uncaught_exceptions() == 0 && broken_.empty()) {
      drop_open_step();
      return;
    }
  } catch (const std::exception&) {  // the groups are dead: what follows frees whoever waits
  }
  world_.hop1().shutdown();
  world_.hop2().shutdown();
}

void Reducer::require_alive() const {
  if (!broken_.empty()) {
    fail(ErrorCode::kState, {"train::Reducer", "an exchange after a failure", "", "a new start of all ranks",
                             "resuming from the last checkpoint; the failure was: " + broken_});
  }
}

// Runs what may fail on the communication thread; after a failure no further exchange is possible.
void Reducer::guard(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    broken_ = error.what();
    pipeline_.abandon();
    state_ = State::kIdle;
    throw;
  }
}

void Reducer::run_collective(const std::function<void(comm::World&)>& work) {
  require_alive();
  streams_->gradients_recorded();
  guard([&] {
    thread_.run([&] {
      streams_->enter();
      const WaitingScope waiting(world_.progress());
      work(world_);
      streams_->exchange_recorded();
    });
  });
  streams_->wait_for_exchange();
}

// ---- a step, from the first hook to the end of backward

void Reducer::on_gradient(int parameter, const at::Tensor& incoming) {
  if (!sync_) return;
  const at::NoGradGuard no_grad;
  const int backward = current_backward();
  if (state_ == State::kBackward && backward != backward_) drop_open_step();
  if (state_ != State::kBackward) {
    open_step();
    backward_ = backward;
    after_backward([this] { on_backward_end(); });
  }
  if (arrived_[parameter] != 0) {
    fail(ErrorCode::kState, {"train::Reducer", "gradient of " + parameters_[parameter].name + " in one backward",
                             "twice", "once", "no_sync() around all but the last use of the module"});
  }
  take_gradient(parameter, incoming);
  mark_arrived(parameter);
  hand_over_ready();
}

void Reducer::open_step() {
  require_alive();
  if (before_step_) before_step_();
  state_ = State::kBackward;
  ++opened_steps_;
  arrival_.clear();
  std::fill(arrived_.begin(), arrived_.end(), 0);
  std::fill(undefined_.begin(), undefined_.end(), 0);
  std::fill(used_.begin(), used_.end(), 1);
  std::fill(woke_.begin(), woke_.end(), 0);
  count_remaining();
  sent_before_ = world_.hop1().counters().total() + world_.hop2().counters().total();
  pipeline_.open(opened_steps_, !settings_.step_log.empty());
}

void Reducer::count_remaining() {
  const std::vector<Bucket>& buckets = exchanges_.layout().buckets;
  buckets_of_.assign(parameters_.size(), {});
  remaining_.assign(buckets.size(), 0);
  next_bucket_ = 0;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (const auto& chunk : buckets[bucket].chunks) {
      for (const Piece& piece : chunk) {
        std::vector<int>& of = buckets_of_[piece.parameter];
        if (!of.empty() && of.back() == static_cast<int>(bucket)) continue;
        of.push_back(static_cast<int>(bucket));
        ++remaining_[bucket];
      }
    }
  }
}

// Brings .grad to where the exchange reads and writes it: the bucket's memory on the dense route, else memory of its
// own.
void Reducer::take_gradient(int parameter, const at::Tensor& incoming) {
  at::Tensor& gradient = parameters_[parameter].tensor.mutable_grad();
  const at::Tensor& slot = exchanges_.slot(parameter);
  GradientState& state = exchanges_.gradients()[parameter];
  state.used = true;
  state.woke = false;
  if (slot.defined()) {
    if (!aliases(gradient, slot)) {
      slot.copy_(gradient.detach());
      gradient = slot;
    }
  } else if (gradient.requires_grad() || !gradient.is_contiguous() || shares_memory(gradient, incoming)) {
    gradient = gradient.detach().clone(at::MemoryFormat::Contiguous);
  }
  state.source = gradient;
  streams_->share(gradient);
}

void Reducer::mark_arrived(int parameter) {
  arrived_[parameter] = 1;
  arrival_.push_back(parameter);
  for (const int bucket : buckets_of_[parameter]) --remaining_[bucket];
}

// The last bucket waits for the end of backward: it tells the other ranks that this one has come through.
void Reducer::hand_over_ready() {
  const int last = static_cast<int>(remaining_.size()) - 1;
  while (next_bucket_ < last && remaining_[next_bucket_] == 0) {
    hand_over(next_bucket_, 0);
    ++next_bucket_;
  }
}

void Reducer::hand_over(int bucket, std::uint32_t flags) {
  streams_->gradients_recorded();
  thread_.post([this, bucket, flags] {
    streams_->enter();
    pipeline_.on_bucket(bucket, flags);
  });
}

void Reducer::on_backward_end() {
  const at::NoGradGuard no_grad;
  hooks_->hook_thawed();
  take_missing_gradients();
  finish_exchange(comm::flag::kActive);
}

// Parameters whose hook did not fire: gradients that earlier micro-batches left count, the others take part as zeros.
void Reducer::take_missing_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (arrived_[i] != 0) continue;
    at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    if (!gradient.defined()) {
      undefined_[i] = 1;
      const at::Tensor& slot = exchanges_.slot(static_cast<int>(i));
      gradient = slot.defined() ? slot : at::zeros_like(parameters_[i].tensor);
      if (slot.defined()) slot.zero_();
    }
    take_gradient(static_cast<int>(i), at::Tensor());
    exchanges_.gradients()[i].used = undefined_[i] == 0;
    mark_arrived(static_cast<int>(i));
  }
}

void Reducer::hand_over_rest(std::uint32_t flags) {
  const int last = static_cast<int>(remaining_.size()) - 1;
  for (; next_bucket_ <= last; ++next_bucket_) hand_over(next_bucket_, next_bucket_ == last ? flags : 0);
}

void Reducer::finish_exchange(std::uint32_t flags) {
  const double begin = monotonic_seconds();
  const bool some_unused = std::find(undefined_.begin(), undefined_.end(), 1) != undefined_.end();
  guard([&] {
    hand_over_rest(flags | (some_unused ? comm::flag::kUnused : 0));
    thread_.run([this] {
      pipeline_.conclude();
      const WaitingScope waiting(world_.progress());
      agree_on_masks();
      if (settings_.broadcast_buffers) broadcast_buffers();
      streams_->exchange_recorded();
    });
  });
  streams_->wait_for_exchange();
  restore_undefined_gradients();
  exposed_s_ = monotonic_seconds() - begin;
  state_ = State::kExchanged;
}

// On the communication thread. Only when a message said that there is something to agree on.
void Reducer::agree_on_masks() {
  if ((pipeline_.outcome().flags & (comm::flag::kUnused | comm::flag::kWake)) == 0) return;
  const auto count = static_cast<std::int64_t>(parameters_.size());
  const at::Tensor masks = at::empty({2 * count}, at::TensorOptions().dtype(at::kByte));
  std::uint8_t* bytes = masks.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    bytes[i] = exchanges_.gradients()[i].used ? 1 : 0;
    bytes[count + i] = exchanges_.gradients()[i].woke ? 1 : 0;
  }
  world_.hop1().all_reduce(masks, comm::ReduceOp::kMax, {"used parameters", opened_steps_})->wait();
  used_.assign(bytes, bytes + count);
  woke_.assign(bytes + count, bytes + 2 * count);
}

// A parameter that no rank used has no gradient, as without us.
void Reducer::restore_undefined_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (undefined_[i] == 0 || used_[i] != 0) continue;
    parameters_[i].tensor.mutable_grad() = at::Tensor();
    exchanges_.gradients()[i].source = at::Tensor();
  }
}

// Backward has thrown: the other ranks wait for our buckets, so they get them with a flag that makes everyone skip.
void Reducer::drop_open_step() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;  // the next backward may have begun to accumulate: the exchange must not add to it
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& gradient = parameter.tensor.grad();
    gradients.push_back(gradient.defined() ? gradient.detach().clone() : at::Tensor());
  }
  take_missing_gradients();
  finish_exchange(comm::flag::kActive | comm::flag::kDropped);
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].tensor.mutable_grad() = gradients[i];
}

// ---- between backward and the next one

const StepOutcome* Reducer::outcome() {
  if (state_ == State::kBackward) drop_open_step();
  return state_ == State::kExchanged ? &pipeline_.outcome() : nullptr;
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
    if (used_[i] != 0) continue;
    log(LogLevel::kWarning, "parameter " + parameters_[i].name +
                                " got no gradient on any rank in the first step; if another parameter was tied in its "
                                "place, call register_parameter with the shared tensor");
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
  run_collective([&](comm::World& world) {
    require_same_on_all_ranks(world.hop1(), "train::optimizer", facts);
    if (!changed) return;
    exchanges_.cut(std::vector<int>(exchanges_.layout().order), exchanges_.routes());
  });
  pipeline_.forget_predictions();
}

void Reducer::set_routes(const std::vector<ParameterRoute>& routes) {
  wanted_ = routes;
  if (ordered_) exchanges_.set_routes(wanted_);
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

// ---- ranks without batches

void Reducer::set_sync(bool sync) {
  if (sync_ && !sync && state_ == State::kBackward) drop_open_step();
  sync_ = sync;
}

std::int64_t Reducer::join(const std::function<void()>& step) {
  const at::NoGradGuard no_grad;
  for (std::int64_t shadowed = 0;; ++shadowed) {
    if (state_ == State::kBackward) drop_open_step();
    for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad() = at::Tensor();
    open_step();
    take_missing_gradients();
    finish_exchange(0);
    if ((pipeline_.outcome().flags & comm::flag::kActive) == 0) {
      state_ = State::kIdle;
      --opened_steps_;
      return shadowed;
    }
    step();
  }
}

// On the communication thread. One message per dtype.
void Reducer::broadcast_buffers() {
  if (world_.size() == 1) return;
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kHalf, at::kBFloat16, at::kBool}) {
    std::vector<at::Tensor> some;
    std::copy_if(buffers_.begin(), buffers_.end(), std::back_inserter(some),
                 [&](const at::Tensor& buffer) { return buffer.scalar_type() == dtype && buffer.numel() > 0; });
    std::int64_t bytes = 0;
    for (const at::Tensor& buffer : some) bytes += static_cast<std::int64_t>(buffer.nbytes());
    if (bytes == 0) continue;
    const at::Tensor packed = at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
    std::int64_t at = 0;
    const auto part = [&](const at::Tensor& buffer) {
      const auto size = static_cast<std::int64_t>(buffer.nbytes());
      return packed.narrow(0, std::exchange(at, at + size), size).view(dtype).view(buffer.sizes());
    };
    for (const at::Tensor& buffer : some) part(buffer).copy_(buffer);
    world_.hop1().broadcast(packed, 0, {"buffers", opened_steps_})->wait();
    at = 0;
    for (at::Tensor& buffer : some) buffer.copy_(part(buffer));
  }
}

// ---- what is reported and compared

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
  const std::int64_t sent = world_.hop1().counters().total() + world_.hop2().counters().total() - sent_before_;
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
