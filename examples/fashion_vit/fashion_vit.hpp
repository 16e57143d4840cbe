// A small vision transformer whose patches come from three strided convolutions: 28 x 28 pixels become 4 x 4 positions.
// Convolutions instead of cut-out patches, since they learn in far fewer samples (Xiao et al., arXiv 2106.14881).
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "examples/model/transformer_block.hpp"

namespace examples {

struct FashionVitShape {
  std::int64_t layers = 3;
  std::int64_t width = 192;
  std::int64_t heads = 4;
};

class FashionVitImpl : public torch::nn::Module {
 public:
  explicit FashionVitImpl(const FashionVitShape& shape);

  // float32 [batch, 28, 28] to the scores of the ten classes, [batch, 10].
  torch::Tensor forward(const torch::Tensor& pixels);

 private:
  void initialize_weights();

  torch::nn::Conv2d stem1_{nullptr};
  torch::nn::Conv2d stem2_{nullptr};
  torch::nn::Conv2d stem3_{nullptr};
  torch::Tensor position_;  // [16, width]
  std::vector<TransformerBlock> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(FashionVit);

}  // namespace examples
