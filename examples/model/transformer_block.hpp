// The block that both example models are made of: pre-norm attention and a two-layer perceptron, each with a residual
// connection (Vaswani et al., arXiv 1706.03762; pre-norm as in GPT-2).
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace examples {

struct BlockShape {
  std::int64_t width = 128;  // divisible by heads
  std::int64_t heads = 4;
  bool causal = false;  // a position sees itself and what lies before it
};

class TransformerBlockImpl : public torch::nn::Module {
 public:
  explicit TransformerBlockImpl(const BlockShape& shape);
  torch::Tensor forward(torch::Tensor x);  // [batch, positions, width], the same out

 private:
  torch::Tensor attend(const torch::Tensor& x);

  BlockShape shape_;
  torch::nn::LayerNorm attention_norm_{nullptr};
  torch::nn::Linear query_key_value_{nullptr};
  torch::nn::Linear attention_out_{nullptr};
  torch::nn::LayerNorm perceptron_norm_{nullptr};
  torch::nn::Linear widen_{nullptr};
  torch::nn::Linear narrow_{nullptr};
};
TORCH_MODULE(TransformerBlock);

}  // namespace examples
