#include "examples/char_gpt/char_gpt.hpp"

#include <torch/torch.h>

#include <string>

namespace examples {

CharGptImpl::CharGptImpl(const CharGptShape& shape) {
  character_ = register_module("character", torch::nn::Embedding(shape.characters, shape.width));
  position_ = register_module("position", torch::nn::Embedding(shape.window, shape.width));
  for (std::int64_t i = 0; i < shape.layers; ++i)
    blocks_.push_back(register_module("block" + std::to_string(i),
                                      TransformerBlock(BlockShape{shape.width, shape.heads, /*causal=*/true})));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})));
  head_ = register_module("head", torch::nn::Linear(shape.width, shape.characters));
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
