#include "examples/model/transformer_block.hpp"

#include <torch/torch.h>

#include <string>

#include "thinwire/base/error.hpp"

namespace examples {

TransformerBlockImpl::TransformerBlockImpl(const BlockShape& shape) : shape_(shape) {
  if (shape.heads < 1 || shape.width < 1 || shape.width % shape.heads != 0)
    thinwire::fail(thinwire::ErrorCode::kInvalidArgument,
                   {.place = "model",
                    .what = "width and heads",
                    .got = std::to_string(shape.width) + " and " + std::to_string(shape.heads),
                    .want = "a width that the heads divide",
                    .hint = {}});
  const std::int64_t width = shape.width;
  attention_norm_ = register_module("attention_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  query_key_value_ = register_module("query_key_value", torch::nn::Linear(width, 3 * width));
  attention_out_ = register_module("attention_out", torch::nn::Linear(width, width));
  perceptron_norm_ = register_module("perceptron_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  widen_ = register_module("widen", torch::nn::Linear(width, 4 * width));
  narrow_ = register_module("narrow", torch::nn::Linear(4 * width, width));
}

torch::Tensor TransformerBlockImpl::attend(const torch::Tensor& x) {
  const std::int64_t batch = x.size(0);
  const std::int64_t positions = x.size(1);
  const auto parts = query_key_value_->forward(x)
                         .view({batch, positions, 3, shape_.heads, shape_.width / shape_.heads})
                         .permute({2, 0, 3, 1, 4});
  const auto mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, shape_.causal);
  return attention_out_->forward(mixed.transpose(1, 2).reshape({batch, positions, shape_.width}));
}

torch::Tensor TransformerBlockImpl::forward(torch::Tensor x) {
  x = x + attend(attention_norm_->forward(x));
  return x + narrow_->forward(torch::gelu(widen_->forward(perceptron_norm_->forward(x))));
}

}  // namespace examples
