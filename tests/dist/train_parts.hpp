// Pieces that the training programs of this folder share: optimizers by name, a callback inside backward, state as
// text.
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/train/vectors.hpp"
#include "thinwire/thinwire.hpp"

namespace thinwire::tests {

// "dense" and "int4" (AdamW; the codec is a setting of DataParallel) | "one_bit" (frozen after `freeze` steps).
inline std::unique_ptr<torch::optim::Optimizer> make_optimizer(DataParallel& parallel, const std::string& kind,
                                                               std::int64_t freeze) {
  if (kind == "one_bit")
    return std::make_unique<OneBitAdam>(parallel,
                                        train::OneBitAdamSettings{.lr = 3e-3, .beta2 = 0.9, .freeze_step = freeze});
  return std::make_unique<AdamW>(parallel, train::AdamWSettings{.lr = 1e-3});
}

// The codec that DataParallel needs for the optimizer of that name.
inline std::string codec_of(const std::string& kind) {
  return kind == "int4" ? "int4" : "fp32";
}

// The identity; its backward calls `callback`, if there is one, on the way.
struct InBackward : torch::autograd::Function<InBackward> {
  static inline std::function<void()> callback = nullptr;
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x.view_as(x); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*, torch::autograd::tensor_list grads) {
    if (const std::function<void()> now = callback) now();
    return grads;
  }
};

// The same weights wherever it runs.
inline void fill(torch::nn::Module& module, std::uint64_t seed = 7) {
  const at::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module.parameters()) parameter.copy_(train::noise(seed++, parameter.sizes(), 0.1));
}

// A hash of the bits of what is asked for: x parameters, m and v moments, e and s the residuals of this rank.
inline std::string state_text(DataParallel& parallel, const torch::optim::Optimizer& optimizer,
                              const std::string& parts = "xmves") {
  std::string text;
  for (const auto& [name, bits] : train::state_bits(parallel, optimizer))
    if (parts.find(name[0]) != std::string::npos && name.rfind("steps", 0) != 0)
      text += name + "=" + std::to_string(bits) + "\n";
  return std::to_string(hash_text(text));
}

}  // namespace thinwire::tests
