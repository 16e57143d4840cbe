#include "bench/step/byte_transformer.hpp"

#include <torch/torch.h>

namespace thinwire::bench {
namespace {

namespace nn = torch::nn;
namespace functional = torch::nn::functional;

nn::LayerNorm layer_norm() {
  return nn::LayerNorm(nn::LayerNormOptions({kWidth}));
}

}  // namespace

BlockImpl::BlockImpl()
    : norm1_(register_module("norm1", layer_norm())),
      norm2_(register_module("norm2", layer_norm())),
      query_key_value_(register_module("qkv", nn::Linear(kWidth, 3 * kWidth))),
      out_(register_module("out", nn::Linear(kWidth, kWidth))),
      feed_forward_(register_module(
          "feed_forward", nn::Sequential(nn::Linear(kWidth, 4 * kWidth), nn::GELU(), nn::Linear(4 * kWidth, kWidth)))) {
}

torch::Tensor BlockImpl::attend(const torch::Tensor& x) {
  const auto batch = x.size(0), tokens = x.size(1);
  const torch::Tensor parts =
      query_key_value_->forward(x).view({batch, tokens, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
  const torch::Tensor mixed =
      at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, /*dropout_p=*/0.0, /*is_causal=*/true);
  return out_->forward(mixed.transpose(1, 2).reshape({batch, tokens, kWidth}));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) {
  const torch::Tensor attended = x + attend(norm1_->forward(x));
  return attended + feed_forward_->forward(norm2_->forward(attended));
}

ByteTransformerImpl::ByteTransformerImpl()
    : embedding_(register_module("embedding", nn::Embedding(kVocabulary, kWidth))),
      position_(register_parameter("position", torch::randn({kTokens, kWidth}) * 0.02)),
      norm_(nullptr),
      head_(nullptr) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer) blocks_->push_back(Block());
  register_module("blocks", blocks_);
  norm_ = register_module("norm", layer_norm());
  head_ = register_module("head", nn::Linear(kWidth, kVocabulary));
}

torch::Tensor ByteTransformerImpl::forward(const torch::Tensor& bytes) {
  const torch::Tensor x = embedding_->forward(bytes) + position_;
  return head_->forward(norm_->forward(blocks_->forward(x)));
}

torch::Tensor loss_of(ByteTransformer& model, const torch::Tensor& batch) {
  const torch::Tensor logits = model->forward(batch.slice(1, 0, -1));
  return functional::cross_entropy(logits.reshape({-1, kVocabulary}), batch.slice(1, 1).reshape({-1}));
}

}  // namespace thinwire::bench
