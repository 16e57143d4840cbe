#include "thinwire/train/optim/sgd.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "thinwire/base/error.hpp"
#include "thinwire/train/optim/adam_moments.hpp"
#include "thinwire/train/optim/archive.hpp"
#include "thinwire/train/optim/update_kernels.hpp"

namespace thinwire::train {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::vector<Fact> all_facts(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  std::vector<Fact> facts;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const SgdSettings& settings = group_settings<SgdSettings>(groups[group]);
    const std::string of = " of parameter group " + std::to_string(group);
    facts.insert(facts.end(), {{"lr" + of, c10::str(settings.lr)},
                               {"momentum" + of, c10::str(settings.momentum)},
                               {"weight_decay" + of, c10::str(settings.weight_decay)}});
  }
  return facts;
}

void check(const SgdSettings& settings) {
  const auto require = [](const char* name, double value, bool good, const char* want) {
    if (!good) fail(ErrorCode::kInvalidArgument, {"train::Sgd", name, std::to_string(value), want, ""});
  };
  require("lr", settings.lr, settings.lr >= 0, "0 or more");
  require("momentum", settings.momentum, settings.momentum >= 0 && settings.momentum < 1, "0 to below 1");
  require("weight_decay", settings.weight_decay, settings.weight_decay >= 0, "0 or more");
}

}  // namespace

// A residual is a gradient that has not been applied. Without momentum it is worth lr * residual, so when lr changes it
// is rescaled (by lr before / lr now), and when lr becomes 0 it is sent densely and applied with the lr before.
struct Sgd::Impl {
  Impl(Reducer& reducer, const std::vector<torch::optim::OptimizerParamGroup>& groups)
      : bucketed(reducer, groups, all_facts(groups)),
        momentum(reducer.parameters().size()),
        residual_lr(reducer.parameters().size(), 0.0),
        started(reducer.parameters().size(), 0),
        flushed(reducer.parameters().size()) {
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      momentum[i] = at::zeros_like(reducer.parameters()[i].tensor).set_requires_grad(false);
    }
  }

  void follow_learning_rate(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
    std::vector<int> to_flush;
    for (std::size_t i = 0; i < bucketed.count(); ++i) {
      const int group = bucketed.group_of(static_cast<int>(i));
      if (group < 0 || bucketed.reducer().exchanges().route(static_cast<int>(i)).route == Route::kDense) continue;
      const SgdSettings& settings = group_settings<SgdSettings>(groups[group]);
      if (settings.momentum > 0 || settings.lr == residual_lr[i]) continue;
      if (settings.lr == 0) {
        to_flush.push_back(static_cast<int>(i));
      } else {
        if (residual_lr[i] > 0) {
          bucketed.reducer().exchanges().rescale(static_cast<int>(i), static_cast<float>(residual_lr[i] / settings.lr));
        } else {  // what was held back while lr was 0 is worth nothing
          bucketed.reducer().exchanges().clear_residual(static_cast<int>(i));
        }
        residual_lr[i] = settings.lr;
      }
    }
    if (!to_flush.empty()) flush(to_flush);
  }

  void flush(const std::vector<int>& parameters) {
    const std::vector<at::Tensor> unsent = bucketed.reducer().flush_residuals(parameters);
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      flushed[parameters[k]] = unsent[k].mul_(residual_lr[parameters[k]]);
      residual_lr[parameters[k]] = 0;
    }
  }

  void update(std::size_t i, const SgdSettings& settings) {
    if (flushed[i].defined()) {
      reducer_parameter(i).sub_(flushed[i]);
      flushed[i] = at::Tensor();
    }
    sgd_update(
        {bucketed.values(i), settings.momentum > 0 ? floats(momentum[i]) : std::span<float>(), bucketed.gradient(i)},
        {.lr = settings.lr,
         .momentum = settings.momentum,
         .weight_decay = settings.weight_decay,
         .first = started[i] == 0,
         .gradient_factor = bucketed.reducer().gradient_factor(static_cast<int>(i))});
    started[i] = 1;
  }

  // There is something to save only between a skipped step with lr 0 and the next one that is taken.
  void save_flushed(torch::serialize::OutputArchive& archive) const {
    std::vector<std::int64_t> waiting;
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < flushed.size(); ++i) {
      if (!flushed[i].defined()) continue;
      waiting.push_back(static_cast<std::int64_t>(i));
      tensors.push_back(flushed[i]);
    }
    write_ints(archive, "flushed_parameters", waiting);
    write_tensors(archive, "flushed", tensors);
  }

  void load_flushed(torch::serialize::InputArchive& archive) {
    const std::vector<std::int64_t> waiting = read_ints(archive, "flushed_parameters");
    std::vector<Parameter> of;
    std::vector<at::Tensor> tensors;
    for (const std::int64_t i : waiting) {
      if (i < 0 || i >= static_cast<std::int64_t>(flushed.size())) {
        fail(ErrorCode::kCorrupt, {"train::Sgd", "entry flushed_parameters", std::to_string(i),
                                   "below " + std::to_string(flushed.size()), "the archive that Sgd's save wrote"});
      }
      of.push_back(bucketed.parameter(static_cast<std::size_t>(i)));
      tensors.push_back(at::zeros_like(of.back().tensor).set_requires_grad(false));
    }
    read_tensors(archive, "flushed", of, tensors);
    std::fill(flushed.begin(), flushed.end(), at::Tensor());
    for (std::size_t k = 0; k < waiting.size(); ++k) flushed[static_cast<std::size_t>(waiting[k])] = tensors[k];
  }

  at::Tensor reducer_parameter(std::size_t i) const { return bucketed.parameter(i).tensor; }

  Bucketed bucketed;
  std::vector<at::Tensor> momentum;
  std::vector<double> residual_lr;  // the learning rate that this parameter's residual is scaled for
  std::vector<std::int64_t> started;
  std::vector<at::Tensor> flushed;  // lr * what the last flush brought, to be applied by the next step
};

Sgd::Sgd(DataParallel& parallel, SgdSettings settings) : Sgd(parallel, all_parameters(parallel), settings) {}

Sgd::Sgd(DataParallel& parallel, const std::vector<torch::optim::OptimizerParamGroup>& groups, SgdSettings settings)
    : Optimizer(groups, std::make_unique<SgdOptions>(settings)),
      impl_(std::make_unique<Impl>(parallel.reducer(), with_own_options(param_groups_, groups))) {
  for (const auto& group : param_groups_) check(group_settings<SgdSettings>(group));
  Reducer& reducer = parallel.reducer();
  reducer.set_routes(gradient_routes(reducer.parameters(), parallel.settings().codec, true));
  reducer.set_before_step([this] { impl_->follow_learning_rate(param_groups_); });
}

Sgd::~Sgd() {
  impl_->bucketed.reducer().set_before_step(nullptr);
}

torch::Tensor Sgd::step(LossClosure closure) {
  const auto update = [this] {
    for (std::size_t i = 0; i < impl_->bucketed.count(); ++i) {
      if (!impl_->bucketed.updates(i)) continue;
      const auto& group = param_groups_[impl_->bucketed.group_of(static_cast<int>(i))];
      impl_->update(i, group_settings<SgdSettings>(group));
    }
  };
  const auto state = [this] {
    Bucketed::NamedTensors tensors;
    for (std::size_t i = 0; i < impl_->momentum.size(); ++i) {
      tensors.emplace_back("momentum of " + impl_->bucketed.parameter(i).name, impl_->momentum[i]);
    }
    return tensors;
  };
  return impl_->bucketed.step(closure, update, state);
}

void Sgd::save(torch::serialize::OutputArchive& archive) const {
  archive.write("optimizer", c10::IValue("thinwire Sgd 1"));
  write_tensors(archive, "momentum", impl_->momentum);
  write_ints(archive, "started", impl_->started);
  for (std::size_t i = 0; i < impl_->residual_lr.size(); ++i) {
    write_double(archive, "residual_lr_" + std::to_string(i), impl_->residual_lr[i]);
  }
  impl_->save_flushed(archive);
}

void Sgd::load(torch::serialize::InputArchive& archive) {
  require_kind(archive, "thinwire Sgd 1");
  read_tensors(archive, "momentum", impl_->bucketed.reducer().parameters(), impl_->momentum);
  impl_->started = read_ints(archive, "started");
  for (std::size_t i = 0; i < impl_->residual_lr.size(); ++i) {
    impl_->residual_lr[i] = read_double(archive, "residual_lr_" + std::to_string(i));
  }
  impl_->load_flushed(archive);
}

}  // namespace thinwire::train
