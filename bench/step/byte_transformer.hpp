// The model of `thinwire bench step`: a decoder-only transformer over bytes, 10,868,992 parameters. The same, layer for
// layer, as in bench_step_torch.py.
#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace thinwire::bench {

inline constexpr std::int64_t kWidth = 384;
inline constexpr std::int64_t kLayers = 6;
inline constexpr std::int64_t kHeads = 6;
inline constexpr std::int64_t kTokens = 64;
inline constexpr std::int64_t kBatch = 4;
inline constexpr std::int64_t kVocabulary = 256;
inline constexpr std::int64_t kParameters = 10'868'992;

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl();
  torch::Tensor forward(const torch::Tensor& x);  // [batch, tokens, width], the same out

 private:
  torch::Tensor attend(const torch::Tensor& x);

  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear query_key_value_, out_;
  torch::nn::Sequential feed_forward_;
};
TORCH_MODULE(Block);

class ByteTransformerImpl : public torch::nn::Module {
 public:
  ByteTransformerImpl();
  torch::Tensor forward(const torch::Tensor& bytes);  // [batch, tokens] int64 -> [batch, tokens, vocabulary]

 private:
  torch::nn::Embedding embedding_;
  torch::Tensor position_;
  torch::nn::Sequential blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(ByteTransformer);

// Predicts every byte of `batch` [batch, tokens + 1] from those before it.
torch::Tensor loss_of(ByteTransformer& model, const torch::Tensor& batch);

}  // namespace thinwire::bench
