#include "thinwire/train/optim/one_bit_adam.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <map>

#include "thinwire/base/error.hpp"
#include "thinwire/base/log.hpp"
#include "thinwire/codec/codec.hpp"
#include "thinwire/train/optim/adam_moments.hpp"
#include "thinwire/train/optim/archive.hpp"
#include "thinwire/train/optim/freeze_policy.hpp"
#include "thinwire/train/optim/frozen_variance.hpp"

namespace thinwire::train {
namespace {

using Groups = std::vector<torch::optim::OptimizerParamGroup>;

AdamWSettings adam_of(const OneBitAdamSettings& s) {
  return {.lr = s.lr, .beta1 = s.beta1, .beta2 = s.beta2, .eps = s.eps, .weight_decay = s.weight_decay};
}

const OneBitAdamSettings& settings_of(const Groups& groups, int group) {
  return group_settings<OneBitAdamSettings>(groups[group]);
}

std::vector<Fact> all_facts(const Groups& groups, const OneBitAdamSettings& common) {
  std::vector<Fact> facts{{"warmup_codec", common.warmup_codec},
                          {"codec of the second stage", common.codec},
                          {"freeze_step", std::to_string(common.freeze_step)},
                          {"total_steps", std::to_string(common.total_steps)},
                          {"lr_warmup_steps", std::to_string(common.lr_warmup_steps)},
                          {"v_floor", c10::str(common.v_floor)}};
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto some = facts_of(adam_of(settings_of(groups, static_cast<int>(group))), group);
    facts.insert(facts.end(), some.begin(), some.end());
  }
  return facts;
}

void check(const OneBitAdamSettings& s) {
  const auto require = [](bool good, const char* name, const std::string& got, const char* want, const char* hint) {
    if (!good) fail(ErrorCode::kInvalidArgument, {"train::OneBitAdam", name, got, want, hint});
  };
  check_adam(adam_of(s));
  require(s.freeze_step == -1 || s.freeze_step >= 1, "freeze_step", std::to_string(s.freeze_step), "-1 or at least 1",
          "-1, which freezes when the variance is stable");
  require(s.v_floor >= 0 && s.v_floor <= 1, "v_floor", std::to_string(s.v_floor), "0 to 1", "");
  require(s.total_steps >= 0, "total_steps", std::to_string(s.total_steps), "0 (unknown) or more", "");
  codec::make_codec(s.codec);
}

}  // namespace

struct OneBitAdam::Impl {
  Impl(DataParallel& parallel, const Groups& groups, const OneBitAdamSettings& common)
      : settings(common),
        codec(codec::make_codec(common.codec)),
        bucketed(parallel.reducer(), groups, all_facts(groups, common)),
        moments(parallel.reducer().parameters()),
        policy({common.freeze_step, common.total_steps, common.lr_warmup_steps, common.beta2}) {
    check(settings);
    reducer().set_routes(routes());
    reducer().set_stage("warm_up");
  }

  // Nothing may go on reading our moments: neither an exchange under way nor a backward after us.
  ~Impl() {
    reducer().give_up_step();
    reducer().withdraw_momentum();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Reducer& reducer() const { return bucketed.reducer(); }
  // Settings that the residuals and the frozen variance depend on.
  std::map<std::string, std::string> fixed_by_checkpoint() const {
    return {{"warmup_codec", settings.warmup_codec}, {"codec", codec->text()}, {"v_floor", c10::str(settings.v_floor)}};
  }
  bool is_body(std::size_t i) const {
    return bucketed.parameter(i).kind == ParameterKind::kBody && bucketed.group_of(static_cast<int>(i)) >= 0;
  }
  bool is_frozen(std::size_t i) const { return frozen_at >= 0 && is_body(i); }

  // Warm-up: gradients through warmup_codec. After the freeze: the body as momentum, embeddings as int8, the rest
  // dense.
  std::vector<ParameterRoute> routes() const {
    const std::string gradients = frozen_at < 0 ? settings.warmup_codec : "int8:block=128";
    std::vector<ParameterRoute> routes = gradient_routes(reducer().parameters(), gradients, false);
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (is_frozen(i)) routes[i] = {Route::kMomentum, codec->text()};
    }
    return routes;
  }

  void update(const Groups& groups) {
    for (std::size_t i = 0; i < bucketed.count(); ++i) {
      if (!bucketed.updates(i)) continue;
      const OneBitAdamSettings& s = settings_of(groups, bucketed.group_of(static_cast<int>(i)));
      if (reducer().exchanges().route(static_cast<int>(i)).route == Route::kMomentum) {
        update_frozen(i, s);
      } else {
        moments.update(bucketed, i, adam_of(s));
      }
    }
    ++steps;
  }

  // x -= lr * (m / (sqrt_v + eps) + weight_decay * x), decoding m on the way.
  void update_frozen(std::size_t i, const OneBitAdamSettings& s) {
    const std::span<float> x = bucketed.values(i);
    const std::span<float> m(moments.momentum(i).mutable_data_ptr<float>(), x.size());
    const std::span<const float> root(moments.variance(i).const_data_ptr<float>(), x.size());
    const codec::ActiveMask active = frozen.at(static_cast<int>(i)).active();
    const codec::AdamFrozenStep step{.lr = static_cast<float>(s.lr),
                                     .eps = static_cast<float>(s.eps),
                                     .weight_decay = static_cast<float>(s.weight_decay)};
    for (const auto& [piece, bytes, piece_codec] : reducer().exchanges().encoded(static_cast<int>(i))) {
      const auto from = static_cast<std::size_t>(piece.offset);
      const auto count = static_cast<std::size_t>(piece.numel);
      codec::decode_update(*piece_codec, bytes, {&piece.numel, 1},
                           {.parameter = x.subspan(from, count),
                            .momentum = m.subspan(from, count),
                            .sqrt_v = root.subspan(from, count),
                            .active = active.empty() ? active : active.subspan(from / 64, (count + 63) / 64)},
                           step);
    }
    moments.count_step(i);
  }

  // After a committed step, on every rank alike.
  void after_step(const Groups& groups) {
    if (frozen_at < 0) {
      consider_freeze(groups);
    } else {
      wake(groups);
    }
    lend_momentum(groups);
  }

  void consider_freeze(const Groups& groups) {
    double lr = 0;
    for (std::size_t group = 0; group < groups.size(); ++group)
      lr = std::max(lr, settings_of(groups, static_cast<int>(group)).lr);
    bool now = policy.fixed(steps);
    if (policy.wants_variance(steps, lr)) now = policy.measured(steps, variance_norm(groups)) || now;
    if (now) {
      freeze(groups);
    } else if (policy.late(steps)) {
      log(LogLevel::kWarning,
          "1-bit Adam: a fifth of " + std::to_string(settings.total_steps) +
              " steps is over and the variance is not stable (r = " + std::to_string(policy.ratio()) +
              ", want 0.96 to 1.04): gradients go on as " + settings.warmup_codec);
    }
  }

  double correction2(std::size_t i, const OneBitAdamSettings& s) const {
    return 1 - std::pow(s.beta2, static_cast<double>(std::max<std::int64_t>(moments.steps(i), 1)));
  }

  double variance_norm(const Groups& groups) {
    double norm = 0;
    for (std::size_t i = 0; i < bucketed.count(); ++i) {
      if (!is_body(i)) continue;
      const OneBitAdamSettings& s = settings_of(groups, bucketed.group_of(static_cast<int>(i)));
      norm += at::sum(moments.variance(i), at::kDouble).item<double>() / correction2(i, s);
    }
    return norm;
  }

  // v_f = v_hat; m and the residuals change from gradient to momentum units so that nothing jumps.
  void freeze(const Groups& groups) {
    frozen_at = steps;
    for (std::size_t i = 0; i < bucketed.count(); ++i) {
      if (!is_body(i)) continue;
      const OneBitAdamSettings& s = settings_of(groups, bucketed.group_of(static_cast<int>(i)));
      moments.variance(i).div_(correction2(i, s));
      if (moments.steps(i) > 0) moments.momentum(i).div_(1 - std::pow(s.beta1, static_cast<double>(moments.steps(i))));
      frozen.emplace(static_cast<int>(i),
                     FrozenVariance(moments.variance(i), codec->block_elements(), settings.v_floor));
      reducer().exchanges().rescale(static_cast<int>(i), static_cast<float>(1 - s.beta1));
    }
    reducer().set_routes(routes());
    reducer().set_stage("one_bit");
    log(LogLevel::kInfo, "1-bit Adam: variance frozen after step " + std::to_string(steps) +
                             (settings.freeze_step < 0 ? " (r = " + std::to_string(policy.ratio()) + ")" : ""));
  }

  // An element without variance got a gradient: its parameter goes back to a live variance. What compression still
  // holds goes into the momentum once, densely: into a live variance it would blow the run up.
  void wake(const Groups& groups) {
    std::vector<int> woken;
    for (std::size_t i = 0; i < bucketed.count(); ++i) {
      if (is_frozen(i) && reducer().woke(static_cast<int>(i))) woken.push_back(static_cast<int>(i));
    }
    if (woken.empty()) return;
    const std::vector<at::Tensor> unsent = reducer().flush_residuals(woken);
    for (std::size_t k = 0; k < woken.size(); ++k) {
      const auto i = static_cast<std::size_t>(woken[k]);
      const OneBitAdamSettings& s = settings_of(groups, bucketed.group_of(woken[k]));
      moments.momentum(i).add_(unsent[k]).mul_(1 - std::pow(s.beta1, static_cast<double>(moments.steps(i))));
      moments.variance(i).square_().mul_(correction2(i, s));
      frozen.erase(woken[k]);
      log(LogLevel::kInfo, "1-bit Adam: " + bucketed.parameter(i).name +
                               " has elements that had no gradient before the freeze; it travels as int8 from here");
    }
    woken_count += static_cast<std::int64_t>(woken.size());
    for (const int parameter : woken) woken_kinds.push_back(parameter);
    reducer().change_kinds(woken, ParameterKind::kEmbedding, routes_after(woken));
  }

  std::vector<ParameterRoute> routes_after(const std::vector<int>& woken) const {
    std::vector<ParameterRoute> next = routes();
    for (const int parameter : woken) next[parameter] = {Route::kFeedback, "int8:block=128"};
    return next;
  }

  void lend_momentum(const Groups& groups) {
    for (const auto& [i, variance] : frozen) {
      const at::Tensor& m = moments.momentum(i);
      reducer().set_momentum(i, {{m.const_data_ptr<float>(), static_cast<std::size_t>(m.numel())},
                                 static_cast<float>(settings_of(groups, bucketed.group_of(i)).beta1),
                                 variance.active()});
    }
  }

  OneBitAdamSettings settings;
  std::shared_ptr<const codec::Codec> codec;
  Bucketed bucketed;
  AdamMoments moments;  // the variance of a frozen parameter holds its root with the floor applied
  FreezePolicy policy;
  std::map<int, FrozenVariance> frozen;  // by parameter
  std::int64_t steps = 0;
  std::int64_t frozen_at = -1;
  std::int64_t woken_count = 0;
  std::vector<std::int64_t> woken_kinds;  // parameters that woke, in order
};

OneBitAdam::OneBitAdam(DataParallel& parallel, OneBitAdamSettings settings)
    : OneBitAdam(parallel, all_parameters(parallel), settings) {}

OneBitAdam::OneBitAdam(DataParallel& parallel, const Groups& groups, OneBitAdamSettings settings)
    : Optimizer(groups, std::make_unique<OneBitAdamOptions>(settings)),
      impl_(std::make_unique<Impl>(parallel, with_own_options(param_groups_, groups), settings)) {
  for (std::size_t group = 0; group < param_groups_.size(); ++group)
    check(settings_of(param_groups_, static_cast<int>(group)));
}

OneBitAdam::~OneBitAdam() = default;

torch::Tensor OneBitAdam::step(LossClosure closure) {
  const std::int64_t before = impl_->steps;
  torch::Tensor loss = impl_->bucketed.step(
      closure, [this] { impl_->update(param_groups_); }, [this] { return impl_->moments.named(impl_->bucketed); });
  if (impl_->steps > before) {
    const at::NoGradGuard no_grad;
    impl_->after_step(param_groups_);
  }
  return loss;
}

bool OneBitAdam::frozen() const {
  return impl_->frozen_at >= 0;
}
std::int64_t OneBitAdam::frozen_at() const {
  return impl_->frozen_at;
}
double OneBitAdam::variance_ratio() const {
  return impl_->policy.ratio();
}
std::int64_t OneBitAdam::woken_parameters() const {
  return impl_->woken_count;
}

void OneBitAdam::save(torch::serialize::OutputArchive& archive) const {
  archive.write("optimizer", c10::IValue("thinwire OneBitAdam 1"));
  for (const auto& [key, value] : impl_->fixed_by_checkpoint()) archive.write(key, c10::IValue(value));
  impl_->moments.save(archive);
  write_int(archive, "taken", impl_->steps);
  write_int(archive, "frozen_at", impl_->frozen_at);
  write_ints(archive, "woken", impl_->woken_kinds);
  const FreezePolicy::State& state = impl_->policy.state();
  write_double(archive, "norm_before", state.norm_before);
  write_double(archive, "ratio", state.ratio);
  write_double(archive, "last_lr", state.last_lr);
  write_int(archive, "risen_at", state.risen_at);
  write_int(archive, "warned", state.warned);
}

void OneBitAdam::load(torch::serialize::InputArchive& archive) {
  require_kind(archive, "thinwire OneBitAdam 1");
  for (const auto& [key, value] : impl_->fixed_by_checkpoint()) {
    c10::IValue saved;
    if (archive.try_read(key, saved) && saved.isString() && saved.toStringRef() == value) continue;
    fail(ErrorCode::kMismatch,
         {"train::OneBitAdam", key + " in the archive", saved.isString() ? saved.toStringRef() : "none", value,
          "the settings that were saved"});
  }
  impl_->moments.load(archive, impl_->reducer().parameters());
  impl_->steps = read_int(archive, "taken");
  impl_->frozen_at = read_int(archive, "frozen_at");
  impl_->woken_kinds = read_ints(archive, "woken");
  impl_->woken_count = static_cast<std::int64_t>(impl_->woken_kinds.size());
  impl_->policy.restore({read_double(archive, "norm_before"), read_double(archive, "ratio"),
                         read_double(archive, "last_lr"), read_int(archive, "risen_at"), read_int(archive, "warned")});
  impl_->frozen.clear();
  const std::vector<int> woken(impl_->woken_kinds.begin(), impl_->woken_kinds.end());
  impl_->reducer().change_kinds(woken, ParameterKind::kEmbedding, impl_->routes_after(woken));
  for (std::size_t i = 0; i < impl_->bucketed.count(); ++i) {
    if (impl_->is_frozen(i)) impl_->frozen.emplace(static_cast<int>(i), FrozenVariance(impl_->moments.variance(i)));
  }
  impl_->reducer().set_stage(impl_->frozen_at >= 0 ? "one_bit" : "warm_up");
  impl_->lend_momentum(param_groups_);
}

}  // namespace thinwire::train
