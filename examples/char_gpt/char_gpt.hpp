// A decoder-only transformer over characters.
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "examples/model/transformer_block.hpp"

namespace examples {

struct CharGptShape {
  std::int64_t characters = 65;
  std::int64_t window = 64;  // positions that a prediction can see
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
};

class CharGptImpl : public torch::nn::Module {
 public:
  explicit CharGptImpl(const CharGptShape& shape);

  // int64 [batch, positions <= window] to the scores of the next character, [batch, positions, characters].
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  void initialize_weights();

  torch::nn::Embedding character_{nullptr};
  torch::nn::Embedding position_{nullptr};
  std::vector<TransformerBlock> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(CharGpt);

// Mean cross-entropy per character, in nats.
torch::Tensor next_character_loss(CharGpt& model, const torch::Tensor& input, const torch::Tensor& target);

}  // namespace examples
