#include "thinwire/train/ddp/reducer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <bit>
#include <exception>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"

namespace thinwire::train {
namespace {

ClipSettings clip_settings(const DataParallelSettings& settings) {
  return {.max_norm = settings.max_grad_norm, .predicted = settings.clip_mode == ClipMode::kPredicted};
}

// True when writing into `gradient` could change a tensor that autograd still uses. Not seen with torch 2.13, where
// accumulation copies what shares memory; nothing promises that it always will.
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
      thread_({.in_flight = [this] { return pipeline_.in_flight(); },
               .advance = [this] { pipeline_.advance(); },
               .max_in_flight = StepPipeline::kMaxInFlight}),
      wanted_(parameters_.size()),
      arrived_(parameters_.size()),
      undefined_(parameters_.size()),
      used_(parameters_.size(), 1),
      woke_(parameters_.size()),
      exchanged_(parameters_.size()) {
  sent_before_ = sent_bytes();
  hooks_ = std::make_unique<GradientHooks>(
      parameters_, [this](int parameter, const at::Tensor& incoming) { on_gradient(parameter, incoming); });
}

// A step that is open on one rank only would leave the others waiting: it is given up together, or, while an exception
// unwinds or after a failure, the groups are shut down so that nobody waits.
Reducer::~Reducer() {
  hooks_.reset();
  give_up_step();
}

void Reducer::give_up_step() noexcept {
  if (state_ != State::kBackward) {
    state_ = State::kIdle;
    return;
  }
  try {
    if (std::uncaught_exceptions() == 0 && broken_.empty()) {
      drop_open_step();
      state_ = State::kIdle;
      return;
    }
  } catch (const std::exception&) {  // the groups are dead: what follows frees whoever waits
  }
  world_.hop1().shutdown();
  world_.hop2().shutdown();
  if (broken_.empty()) broken_ = "an exception left a step open";
  end_step(State::kIdle);
  try {
    thread_.drain();
  } catch (const std::exception&) {  // what was in flight has ended with the groups
  }
  pipeline_.abandon();
}

void Reducer::end_step(State state) {
  state_ = state;
  world_.release(this);
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
    end_step(State::kIdle);
    throw;
  }
}

void Reducer::require_same(const std::string& place, const std::vector<Fact>& facts, const std::string& hint) {
  std::exception_ptr difference;
  run_collective([&](comm::World& world) {
    try {
      require_same_on_all_ranks(world.hop1(), place, facts, hint);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kMismatch) throw;
      difference = std::current_exception();
    }
  });
  if (difference) std::rethrow_exception(difference);
}

void Reducer::run_collective(const std::function<void(comm::World&)>& work) {
  require_alive();
  require_only_user();
  if (state_ == State::kBackward && !open_backward_.expired()) {
    fail(ErrorCode::kState, {"train::Reducer", "a collective", "called while backward runs", "after it or before it",
                             "moving the call out of hooks and of nodes of the graph"});
  }
  if (state_ == State::kBackward) drop_open_step();  // the others have gone through their exchange
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
  if (state_ == State::kExchanged || untaken_) require_own_gradient(parameter);
  if (!sync_) {
    accumulated_ = true;
    return;
  }
  const at::NoGradGuard no_grad;
  if (state_ == State::kBackward && open_backward_.expired()) {
    const at::Tensor first = incoming.defined() ? incoming.detach().clone() : at::Tensor();
    drop_open_step();
    parameters_[parameter].tensor.mutable_grad() = first;
  }
  if (state_ != State::kBackward) {
    open_step();
    open_backward_ = after_backward([this] { on_backward_end(); });
  }
  if (arrived_[parameter] != 0) {
    fail(ErrorCode::kState, {"train::Reducer", "gradient of " + parameters_[parameter].name + " in one backward",
                             "twice", "once", "no_sync() around all but the last use of the module"});
  }
  take_gradient(parameter, incoming);
  mark_arrived(parameter);
  hand_over_ready();
}

// What a compressed exchange left in .grad is the ranks' mean, with what compression held back before in it. Adding to
// it and exchanging the sum would count that twice. (A dense mean may be added to and exchanged again.) The in-place
// addition raises the version by one; zero_grad() and whatever else a trainer does to a gradient before the next
// backward raises it further or brings another tensor.
void Reducer::require_own_gradient(int parameter) {
  const at::Tensor& gradient = parameters_[parameter].tensor.grad();
  const ExchangedGradient& left = exchanged_[parameter];
  if (exchanges_.route(parameter).route == Route::kDense) return;
  if (!gradient.defined() || gradient.unsafeGetTensorImpl() != left.tensor) return;
  if (static_cast<std::int64_t>(gradient._version()) != left.version + 1) return;
  accumulated_ = false;
  if (state_ == State::kExchanged) state_ = State::kIdle;  // it is no more in .grad: there is no step to take
  fail(ErrorCode::kState, {"train::Reducer", "gradient of " + parameters_[parameter].name,
                           "added to after its exchange and before the step", "one exchange for each step",
                           "no_sync() around all but the last backward of a step, or zero_grad() to give a step up"});
}

void Reducer::note_exchanged_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    exchanged_[i] = gradient.defined() ? ExchangedGradient{gradient.unsafeGetTensorImpl(),
                                                           static_cast<std::int64_t>(gradient._version())}
                                       : ExchangedGradient{};
  }
}

// Two threads that issue collectives on one world would do so in an order of their own on each rank.
void Reducer::require_only_user() const {
  if (world_.is_free_for(this)) return;
  fail(ErrorCode::kState, {"train::Reducer", "steps of two DataParallel open at once over one World", "",
                           "one at a time", "a World for each, or ending one backward before the other begins"});
}

void Reducer::open_step() {
  require_alive();
  require_only_user();
  if (before_step_) before_step_();
  untaken_ = state_ == State::kExchanged;
  state_ = State::kBackward;
  world_.claim(this);
  opened_at_s_ = monotonic_seconds();
  ++opened_steps_;
  arrival_.clear();
  accumulated_ = false;
  std::fill(arrived_.begin(), arrived_.end(), 0);
  std::fill(undefined_.begin(), undefined_.end(), 0);
  std::fill(used_.begin(), used_.end(), 1);
  std::fill(woke_.begin(), woke_.end(), 0);
  count_remaining();
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
  if (gradient.layout() != at::kStrided) {
    fail(ErrorCode::kInvalidArgument, {"train::Reducer", "gradient of " + parameters_[parameter].name,
                                       "a sparse tensor", "a dense one", "Embedding without sparse(true)"});
  }
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
  // Dense means may be added to and exchanged again by the outer one.
  const bool dense = std::all_of(wanted_.begin(), wanted_.end(),
                                 [](const ParameterRoute& route) { return route.route == Route::kDense; });
  if (!dense && inside_another_backward()) {
    fail(ErrorCode::kState, {"train::Reducer", "a backward inside of a backward",
                             "first to reach a parameter, so that nobody tells when the outer one has ended",
                             "a parameter that the outer one reaches before", "leaving the last layer out of it"});
  }
  const at::NoGradGuard no_grad;
  timeline_.record({.kind = watch::EventKind::kBackward,
                    .step = opened_steps_,
                    .begin_s = opened_at_s_,
                    .end_s = monotonic_seconds()});
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
  const bool own_batch = (flags & comm::flag::kActive) != 0;
  const bool some_unused = std::find(undefined_.begin(), undefined_.end(), 1) != undefined_.end();
  guard([&] {
    hand_over_rest(flags | (some_unused ? comm::flag::kUnused : 0) | turn_flag());
    thread_.run([this, own_batch] {
      pipeline_.conclude(own_batch);
      const WaitingScope waiting(world_.progress());
      agree_on_masks();
      if (settings_.broadcast_buffers) broadcast_buffers();
      streams_->exchange_recorded();
    });
    require_same_turn();
  });
  streams_->wait_for_exchange();
  restore_undefined_gradients();
  note_exchanged_gradients();
  const double end = monotonic_seconds();
  exposed_s_ = end - begin;
  timeline_.record({.kind = watch::EventKind::kExposed, .step = opened_steps_, .begin_s = begin, .end_s = end});
  end_step(State::kExchanged);
}

// Steps taken, and calls of step() that found none to take: where a rank catches an exception and goes on, both are
// what differs. The weights keep one of each from making up for the other.
std::uint32_t Reducer::turn_flag() const {
  return comm::flag::kTurn << ((committed_steps_ + 3 * idle_steps_) % comm::flag::kTurns);
}

void Reducer::require_same_turn() const {
  const std::uint32_t turns = (pipeline_.outcome().flags / comm::flag::kTurn) % (1U << comm::flag::kTurns);
  if (std::has_single_bit(turns)) return;
  fail(ErrorCode::kMismatch, {"train::Reducer", "steps taken before step " + std::to_string(opened_steps_),
                              "a different number on some rank", "the same on every rank",
                              "the same calls of step() everywhere, also where an exception is caught, and resuming "
                              "from the last checkpoint"});
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
// What the exchange makes of them meanwhile is worth nothing, whether or not the trainer has zeroed them: gradients
// that are defined end as zeros.
void Reducer::drop_open_step() {
  const at::NoGradGuard no_grad;
  std::vector<char> defined;
  for (const Parameter& parameter : parameters_) defined.push_back(parameter.tensor.grad().defined() ? 1 : 0);
  take_missing_gradients();
  finish_exchange(comm::flag::kActive | comm::flag::kDropped);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    gradient = defined[i] != 0 ? at::zeros_like(parameters_[i].tensor) : at::Tensor();
  }
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

}  // namespace thinwire::train
