// The identity, whose backward throws when asked to.
#pragma once

#include <torch/autograd.h>
#include <torch/nn.h>
#include <torch/types.h>

#include <stdexcept>

namespace thinwire::train {

struct Throwing : torch::autograd::Function<Throwing> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x, bool armed) {
    context->saved_data["armed"] = armed;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (context->saved_data["armed"].toBool()) throw std::runtime_error("planted in backward");
    return {gradients[0], torch::Tensor()};
  }
};

// Two layers; backward reaches `second`, then the planted exception, then `first`.
struct FragileImpl : torch::nn::Module {
  FragileImpl() {
    const torch::NoGradGuard no_grad;
    first = register_parameter("first", torch::empty({64, 48}));
    second = register_parameter("second", torch::empty({48, 64}));
    bias = register_parameter("bias", torch::zeros({64}));
    auto generator = at::detail::createCPUGenerator(5);
    first.copy_(torch::randn({64, 48}, generator) * 0.1);
    second.copy_(torch::randn({48, 64}, generator) * 0.1);
  }
  torch::Tensor loss(int step, int rank, bool armed = false) {
    auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * step + rank));
    const torch::Tensor x = torch::randn({16, 64}, generator);
    const torch::Tensor hidden = torch::tanh(x.matmul(first));
    return (Throwing::apply(hidden, armed).matmul(second) + bias - x).square().mean();
  }
  torch::Tensor first, second, bias;
};
TORCH_MODULE(Fragile);

}  // namespace thinwire::train
