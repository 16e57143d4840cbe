#include "thinwire/train/ddp/gradient_hooks.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace thinwire::train {
namespace {

// Its ownership type changed between releases of torch.
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::autograd::Variable&>()));
using Variables = std::vector<torch::autograd::Variable>;

}  // namespace

struct GradientHooks::Impl {
  struct Hook {
    Accumulator accumulator;
    std::uintptr_t key = 0;
  };
  const std::vector<Parameter>& parameters;
  Callback callback;
  std::vector<Hook> hooks;  // by parameter; no accumulator: not hooked
};

GradientHooks::GradientHooks(const std::vector<Parameter>& parameters, Callback callback)
    : impl_(new Impl{parameters, std::move(callback), std::vector<Impl::Hook>(parameters.size())}) {
  hook_thawed();
}

GradientHooks::~GradientHooks() {
  for (Impl::Hook& hook : impl_->hooks) {
    if (hook.accumulator) hook.accumulator->del_post_hook(hook.key);
  }
}

bool GradientHooks::hook_thawed() {
  bool missed = false;
  for (std::size_t i = 0; i < impl_->parameters.size(); ++i) {
    Impl::Hook& hook = impl_->hooks[i];
    if (hook.accumulator || !impl_->parameters[i].tensor.requires_grad()) continue;
    missed = missed || impl_->parameters[i].tensor.grad().defined();
    hook.accumulator = torch::autograd::impl::grad_accumulator(impl_->parameters[i].tensor);
    hook.key = hook.accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, parameter = static_cast<int>(i)](const Variables& outputs, const Variables& inputs) {
          impl_->callback(parameter, inputs.empty() ? at::Tensor() : inputs[0]);
          return outputs;
        }));
  }
  return missed;
}

int GradientHooks::lost() const {
  for (std::size_t i = 0; i < impl_->hooks.size(); ++i) {
    const Accumulator& held = impl_->hooks[i].accumulator;
    if (held && torch::autograd::impl::try_get_grad_accumulator(impl_->parameters[i].tensor) != held) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::weak_ptr<const void> after_backward(std::function<void()> callback) {
  const auto alive = std::make_shared<const char>();
  torch::autograd::Engine::get_default_engine().queue_callback([callback = std::move(callback), alive] { callback(); });
  return alive;
}

bool inside_another_backward() {
  return torch::autograd::get_current_node() != nullptr;
}

}  // namespace thinwire::train
