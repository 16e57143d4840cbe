#include "examples/fashion_vit/fashion_vit.hpp"

#include <torch/torch.h>

#include <cmath>
#include <string>

#include "examples/data/fashion_mnist.hpp"

namespace examples {
namespace {

// Halves the side, rounding up: 28, 14, 7, 4.
torch::nn::Conv2d halve(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(2).padding(1));
}

constexpr std::int64_t kPositions = 16;

}  // namespace

FashionVitImpl::FashionVitImpl(const FashionVitShape& shape) {
  stem1_ = register_module("stem1", halve(1, 32));
  stem2_ = register_module("stem2", halve(32, 64));
  stem3_ = register_module("stem3", halve(64, shape.width));
  position_ = register_parameter("position", 0.02 * torch::randn({kPositions, shape.width}));
  for (std::int64_t i = 0; i < shape.layers; ++i)
    blocks_.push_back(register_module("block" + std::to_string(i),
                                      TransformerBlock(BlockShape{shape.width, shape.heads, /*causal=*/false})));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})));
  head_ = register_module("head", torch::nn::Linear(shape.width, kClasses));
  initialize_weights();
}

// Keeps the size of the signal from layer to layer; torch's defaults shrink it, and few steps are left to make up for
// that.
void FashionVitImpl::initialize_weights() {
  const torch::NoGradGuard no_grad;
  for (const auto& item : modules(/*include_self=*/false)) {
    if (auto* convolution = item->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanIn, torch::kReLU);
    } else if (auto* linear = item->as<torch::nn::LinearImpl>()) {
      linear->weight.normal_(0.0, 1.0 / std::sqrt(static_cast<double>(linear->weight.size(1))));
      linear->bias.zero_();
    }
  }
}

torch::Tensor FashionVitImpl::forward(const torch::Tensor& pixels) {
  torch::Tensor x = torch::gelu(stem1_->forward(pixels.unsqueeze(1)));
  x = stem3_->forward(torch::gelu(stem2_->forward(x)));
  x = x.flatten(2).transpose(1, 2) + position_;
  for (auto& block : blocks_) x = block->forward(x);
  return head_->forward(norm_->forward(x.mean(1)));
}

}  // namespace examples
