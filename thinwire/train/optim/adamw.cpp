#include "thinwire/train/optim/adamw.hpp"

#include <ATen/ops/zeros_like.h>

#include "thinwire/train/optim/adam_moments.hpp"

namespace thinwire::train {

namespace {

std::vector<Fact> all_facts(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  std::vector<Fact> facts;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto some = facts_of(group_settings<AdamWSettings>(groups[group]), group);
    facts.insert(facts.end(), some.begin(), some.end());
  }
  return facts;
}

}  // namespace

struct AdamW::Impl {
  Impl(Reducer& reducer, const std::vector<torch::optim::OptimizerParamGroup>& groups)
      : bucketed(reducer, groups, all_facts(groups)), moments(reducer.parameters()) {}
  Bucketed bucketed;
  AdamMoments moments;
};

AdamW::AdamW(DataParallel& parallel, AdamWSettings settings) : AdamW(parallel, all_parameters(parallel), settings) {}

AdamW::AdamW(DataParallel& parallel, const std::vector<torch::optim::OptimizerParamGroup>& groups,
             AdamWSettings settings)
    : Optimizer(groups, std::make_unique<AdamWOptions>(settings)),
      impl_(std::make_unique<Impl>(parallel.reducer(), with_own_options(param_groups_, groups))) {
  for (const auto& group : param_groups_) {
    check_adam(group_settings<AdamWSettings>(group));
  }
  Reducer& reducer = parallel.reducer();
  reducer.set_routes(gradient_routes(reducer.parameters(), parallel.settings().codec, false));
}

AdamW::~AdamW() = default;

torch::Tensor AdamW::step(LossClosure closure) {
  const auto update = [this] {
    for (std::size_t i = 0; i < impl_->bucketed.count(); ++i) {
      if (!impl_->bucketed.updates(i)) continue;
      const auto& group = param_groups_[impl_->bucketed.group_of(static_cast<int>(i))];
      impl_->moments.update(impl_->bucketed, i, group_settings<AdamWSettings>(group));
    }
  };
  return impl_->bucketed.step(closure, update, [this] { return impl_->moments.named(impl_->bucketed); });
}

void AdamW::save(torch::serialize::OutputArchive& archive) const {
  archive.write("optimizer", c10::IValue("thinwire AdamW 1"));
  impl_->moments.save(archive);
}

void AdamW::load(torch::serialize::InputArchive& archive) {
  require_kind(archive, "thinwire AdamW 1");
  impl_->moments.load(archive, impl_->bucketed.reducer().parameters());
}

}  // namespace thinwire::train
