#include "examples/char_gpt/char_gpt.hpp"

#include <torch/torch.h>

#include <cmath>
#include <string>

namespace examples {
namespace {

constexpr double kInitialDeviation = 0.02;

void start_at_zero_mean(torch::Tensor& weight, double deviation) {
  const torch::NoGradGuard no_grad;
  weight.normal_(0.0, deviation);
}

}  // namespace

CharGptImpl::CharGptImpl(const CharGptShape& shape) {
  character_ = register_module("character", torch::nn::Embedding(shape.characters, shape.width));
  position_ = register_module("position", torch::nn::Embedding(shape.window, shape.width));
  for (std::int64_t i = 0; i < shape.layers; ++i)
    blocks_.push_back(register_module("block" + std::to_string(i),
                                      TransformerBlock(BlockShape{shape.width, shape.heads, /*causal=*/true})));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})));
  head_ = register_module("head", torch::nn::Linear(shape.width, shape.characters));
  initialize_weights();
}

// As in GPT-2: a layer that adds to the residual stream starts smaller, so that the stream does not grow with depth.
// (torch's embeddings start at deviation 1, from which 2,000 steps do not recover.)
void CharGptImpl::initialize_weights() {
  const double into_stream = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(blocks_.size()));
  for (const auto& item : named_modules("", /*include_self=*/false)) {
    if (auto* embedding = item.value()->as<torch::nn::EmbeddingImpl>()) {
      start_at_zero_mean(embedding->weight, kInitialDeviation);
    } else if (auto* linear = item.value()->as<torch::nn::LinearImpl>()) {
      const bool adds = item.key().ends_with("attention_out") || item.key().ends_with("narrow");
      start_at_zero_mean(linear->weight, adds ? into_stream : kInitialDeviation);
      torch::nn::init::zeros_(linear->bias);
    }
  }
}

torch::Tensor CharGptImpl::forward(const torch::Tensor& tokens) {
  const auto places = torch::arange(tokens.size(1), tokens.options());
  torch::Tensor x = character_->forward(tokens) + position_->forward(places);
  for (auto& block : blocks_) x = block->forward(x);
  return head_->forward(norm_->forward(x));
}

torch::Tensor next_character_loss(CharGpt& model, const torch::Tensor& input, const torch::Tensor& target) {
  const torch::Tensor scores = model->forward(input);
  return torch::nn::functional::cross_entropy(scores.flatten(0, 1), target.flatten());
}

}  // namespace examples
