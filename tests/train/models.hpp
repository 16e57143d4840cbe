// Small models and batches whose gradients a test can also compute without us.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>

#include <string>
#include <vector>

namespace thinwire::train {

// Two layers of odd sizes and an embedding: every kind of parameter, tails in every codec.
struct TinyNetImpl : torch::nn::Module {
  explicit TinyNetImpl(std::int64_t width = 70) {
    table = register_module("table", torch::nn::Embedding(40, width));
    first = register_module("first", torch::nn::Linear(width, 90));
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<std::int64_t>{90}));
    second = register_module("second", torch::nn::Linear(90, 40));
  }
  torch::Tensor forward(const torch::Tensor& tokens) { return second(torch::gelu(norm(first(table(tokens))))); }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(TinyNet);

// The same on every rank: a function of the seed only. torch::manual_seed is shared by threads, so weights are drawn
// here.
inline TinyNet make_tiny_net(std::uint64_t seed = 1, std::int64_t width = 70) {
  TinyNet net(width);
  auto generator = at::detail::createCPUGenerator(seed);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : net->parameters()) {
    parameter.copy_(torch::randn(parameter.sizes(), generator) * 0.1);
  }
  return net;
}

// Batch number `step` of a rank: tokens and targets.
inline std::pair<torch::Tensor, torch::Tensor> tiny_batch(std::int64_t step, int rank, std::int64_t size = 8) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * step + rank));
  const torch::Tensor tokens = torch::randint(0, 40, {size}, generator, torch::kLong);
  return {tokens, (tokens * 7 + 3) % 40};
}

inline torch::Tensor tiny_loss(TinyNet& net, std::int64_t step, int rank, std::int64_t size = 8) {
  const auto [tokens, targets] = tiny_batch(step, rank, size);
  return torch::nn::functional::cross_entropy(net->forward(tokens), targets);
}

inline torch::Tensor flat_parameters(torch::nn::Module& module) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& parameter : module.parameters()) flat.push_back(parameter.detach().reshape(-1));
  return torch::cat(flat).clone();
}

}  // namespace thinwire::train
