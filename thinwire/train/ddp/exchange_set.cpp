#include "thinwire/train/ddp/exchange_set.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "thinwire/base/error.hpp"
#include "thinwire/train/ddp/agreement.hpp"
#include "thinwire/train/ddp/residual_move.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"

namespace thinwire::train {
namespace {

// Parameters of different kinds or optimizer groups never share a bucket.
int key_of(const Parameter& parameter) {
  return parameter.optimizer_group * 4 + static_cast<int>(parameter.kind);
}

std::vector<int> reverse_registration(std::size_t count) {
  std::vector<int> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace

ExchangeSet::ExchangeSet(const std::vector<Parameter>& parameters, comm::World& world, BucketSizes sizes)
    : parameters_(parameters),
      world_(world),
      sizes_(sizes),
      routes_(parameters.size()),
      gradients_(parameters.size()),
      slots_(parameters.size()) {
  cut(reverse_registration(parameters.size()), routes_);
}

bool ExchangeSet::all_dense() const {
  return std::all_of(routes_.begin(), routes_.end(), [](const auto& r) { return r.route == Route::kDense; });
}

int ExchangeSet::any_parameter(int bucket) const {
  for (const auto& chunk : layout_.buckets[bucket].chunks) {
    if (!chunk.empty()) return chunk.front().parameter;
  }
  fail(ErrorCode::kInternal, {"train::ExchangeSet", "an empty bucket", std::to_string(bucket), "", ""});
}

void ExchangeSet::cut(const std::vector<int>& order, std::vector<ParameterRoute> routes) {
  const WaitingScope waiting(world_.progress());
  routes_ = std::move(routes);
  keys_.clear();
  for (const Parameter& parameter : parameters_) keys_.push_back(key_of(parameter));
  LayoutRequest request{.parameters = {},
                        .order = order,
                        .ranks = world_.size(),
                        .bucket_bytes = sizes_.bucket_bytes,
                        .first_bucket_bytes = sizes_.first_bucket_bytes};
  for (std::size_t i = 0; i < parameters_.size(); ++i) request.parameters.push_back({parameters_[i].numel(), keys_[i]});
  const Layout before = std::exchange(layout_, cut_layout(request));
  check_same_layout();
  move_server_residuals(before);
  build();
}

// Gloo kills the process on a size that differs between ranks, so sizes must be equal by construction.
void ExchangeSet::check_same_layout() {
  require_same_on_all_ranks(world_.hop1(), "train::ExchangeSet",
                            {{"bucket layout", std::to_string(layout_hash(layout_))}});
}

void ExchangeSet::move_server_residuals(const Layout& before) {
  std::vector<ServerResidual> all;
  for (auto& bucket : server_) std::move(bucket.begin(), bucket.end(), std::back_inserter(all));
  std::vector<ServerResidual> moved;
  if (!before.buckets.empty() && !all_dense()) {
    moved = move_residuals(world_.hop1(), std::move(all), before, layout_,
                           [this](int parameter) { return routes_[parameter].route != Route::kDense; });
  }
  server_.clear();
  server_.resize(layout_.buckets.size());
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) {
    server_[bucket] = server_of(static_cast<int>(bucket), moved);
  }
}

// The residuals this rank holds as the owner of its chunk: those of `old` where they fit, else zeros.
std::vector<ServerResidual> ExchangeSet::server_of(int bucket, std::vector<ServerResidual>& old) {
  std::vector<ServerResidual> residuals;
  for (const Piece& piece : layout_.buckets[bucket].chunks[world_.rank()]) {
    if (routes_[piece.parameter].route == Route::kDense) continue;
    const auto found = std::find_if(old.begin(), old.end(), [&](const ServerResidual& one) {
      return one.residual != nullptr && one.piece == piece;
    });
    residuals.push_back(
        {piece, found != old.end() ? std::move(found->residual) : std::make_unique<codec::ErrorFeedback>(piece.numel)});
  }
  return residuals;
}

void ExchangeSet::set_routes(std::vector<ParameterRoute> routes) {
  routes_ = std::move(routes);
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) {
    server_[bucket] = server_of(static_cast<int>(bucket), server_[bucket]);
  }
  build();
}

void ExchangeSet::build() {
  exchanges_.clear();
  build_slots();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    GradientState& state = gradients_[i];
    if (routes_[i].route == Route::kDense) {
      state.worker.reset();
    } else if (!state.worker) {
      state.worker = std::make_unique<codec::ErrorFeedback>(parameters_[i].numel());
    }
    if (routes_[i].route != Route::kMomentum) state.momentum = {};
  }
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) build_exchange(static_cast<int>(bucket));
}

// One flat tensor for each key whose parameters travel dense, with room for flags behind the last bucket of all.
void ExchangeSet::build_slots() {
  std::map<int, std::int64_t> elements;
  for (const Bucket& bucket : layout_.buckets) elements[bucket.key] = bucket.begin + bucket.elements;
  std::map<int, at::Tensor> arena;
  arenas_.assign(layout_.buckets.size(), at::Tensor());
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    const int key = layout_.buckets[b].key;
    const Parameter& first = parameters_[any_parameter(static_cast<int>(b))];
    if (bucket_route(static_cast<int>(b)).route != Route::kDense) continue;
    if (!arena[key].defined()) arena[key] = at::zeros({elements[key] + kDenseFlagFloats}, first.tensor.options());
    arenas_[b] = arena[key];
  }
  std::map<int, std::int64_t> used;
  for (const int parameter : layout_.order) {
    const at::Tensor& tensor = parameters_[parameter].tensor;
    const std::int64_t begin = std::exchange(used[keys_[parameter]], used[keys_[parameter]] + tensor.numel());
    slots_[parameter] = at::Tensor();
    if (routes_[parameter].route != Route::kDense) continue;
    slots_[parameter] = at::empty({0}, tensor.options().requires_grad(false));
    slots_[parameter].set_(arena[keys_[parameter]].storage(), begin, tensor.sizes(), tensor.strides());
  }
}

void ExchangeSet::build_exchange(int bucket) {
  const Bucket& cut = layout_.buckets[bucket];
  const ExchangeParts parts{&cut, bucket, &gradients_, &server_[bucket], &world_.hop1(), &world_.hop2()};
  const ParameterRoute& route = bucket_route(bucket);
  if (route.route == Route::kDense) {
    const bool last = bucket + 1 == static_cast<int>(layout_.buckets.size());
    const std::int64_t floats = cut.elements + (last ? kDenseFlagFloats : 0);
    exchanges_.push_back(make_dense_exchange(parts, arenas_[bucket].narrow(0, cut.begin, floats), last));
  } else if (route.route == Route::kFeedback) {
    exchanges_.push_back(make_feedback_exchange(parts, codec::make_codec(route.codec)));
  } else {
    exchanges_.push_back(make_momentum_exchange(parts, codec::make_codec(route.codec)));
  }
}

std::vector<ExchangeSet::EncodedPiece> ExchangeSet::encoded(int parameter) const {
  std::vector<EncodedPiece> pieces;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    const auto* momentum = dynamic_cast<const MomentumExchange*>(exchanges_[b].get());
    if (momentum == nullptr) continue;
    for (int owner = 0; owner < layout_.ranks; ++owner) {
      const std::vector<Piece>& chunk = layout_.buckets[b].chunks[owner];
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        if (chunk[i].parameter == parameter) {
          pieces.push_back({chunk[i], momentum->encoded(owner, i), &momentum->codec()});
        }
      }
    }
  }
  return pieces;
}

void ExchangeSet::commit(int parameter) {
  if (gradients_[parameter].worker) gradients_[parameter].worker->commit();
  for (auto& bucket : server_) {
    for (ServerResidual& residual : bucket) {
      if (residual.piece.parameter == parameter) residual.residual->commit();
    }
  }
}

void ExchangeSet::rescale(int parameter, float factor) {
  if (gradients_[parameter].worker) gradients_[parameter].worker->rescale(factor);
  for (ServerResidual* residual : server_residuals()) {
    if (residual->piece.parameter == parameter) residual->residual->rescale(factor);
  }
}

// Not a multiplication by zero: a residual may hold an infinity that must go.
void ExchangeSet::clear_residual(int parameter) {
  const auto clear = [](codec::ErrorFeedback& residual) {
    residual.restore(std::vector<float>(static_cast<std::size_t>(residual.size()), 0.0F));
  };
  if (gradients_[parameter].worker) clear(*gradients_[parameter].worker);
  for (ServerResidual* residual : server_residuals()) {
    if (residual->piece.parameter == parameter) clear(*residual->residual);
  }
}

at::Tensor ExchangeSet::unsent(int parameter) const {
  const at::Tensor sum = at::zeros(parameters_[parameter].tensor.sizes(), at::TensorOptions().dtype(at::kFloat));
  float* values = sum.mutable_data_ptr<float>();
  if (const auto& worker = gradients_[parameter].worker) {
    const std::span<const float> residual = worker->committed();
    const float share = 1.0F / static_cast<float>(world_.size());
    for (std::size_t i = 0; i < residual.size(); ++i) values[i] = residual[i] * share;
  }
  for (const auto& bucket : server_) {
    for (const ServerResidual& one : bucket) {
      if (one.piece.parameter != parameter) continue;
      const std::span<const float> residual = one.residual->committed();
      for (std::size_t i = 0; i < residual.size(); ++i) values[one.piece.offset + i] += residual[i];
    }
  }
  return sum;
}

std::vector<ServerResidual*> ExchangeSet::server_residuals() {
  std::vector<ServerResidual*> residuals;
  for (auto& bucket : server_) {
    for (ServerResidual& residual : bucket) residuals.push_back(&residual);
  }
  return residuals;
}

}  // namespace thinwire::train
