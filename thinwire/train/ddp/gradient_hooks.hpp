// Calls back when autograd has accumulated a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "thinwire/train/ddp/parameters.hpp"

namespace thinwire::train {

// Post-hooks on the gradient accumulators: they fire after accumulation, on the thread that runs backward, and not
// under autograd::grad. The accumulators are held, or the hooks would be lost; hooks are removed in the destructor.
class GradientHooks {
 public:
  // `incoming` is what autograd was given to accumulate; it may share memory with the gradient.
  using Callback = std::function<void(int parameter, const at::Tensor& incoming)>;

  GradientHooks(const std::vector<Parameter>& parameters, Callback callback);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Hooks parameters that have begun to require gradients since the last call. True when one of them has a gradient,
  // which came without us.
  bool hook_thawed();
  // The first parameter whose hook autograd has lost, since the module was moved or converted; -1: none.
  int lost() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs `callback` when the current backward has ended well; what it throws comes out of backward(). The token expires
// with that backward, however it ends.
std::weak_ptr<const void> after_backward(std::function<void()> callback);
// In such a callback: the backward that ends was called by a node of another one.
bool inside_another_backward();

}  // namespace thinwire::train
