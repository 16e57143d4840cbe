#include "thinwire/train/optim/frozen_variance.hpp"

#include <algorithm>
#include <cmath>

namespace thinwire::train {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

void root_with_floor(std::span<float> block, double floor) {
  double sum = 0;
  std::int64_t active = 0;
  for (const float variance : block) {
    if (variance > 0) {
      sum += variance;
      ++active;
    }
  }
  if (active == 0) return;
  const auto lowest = static_cast<float>(floor * std::sqrt(sum / static_cast<double>(active)));
  for (float& variance : block) {
    if (variance > 0) variance = std::max(std::sqrt(variance), lowest);
  }
}

}  // namespace

FrozenVariance::FrozenVariance(const at::Tensor& variance, std::int64_t block_elements, double floor) {
  const std::span<float> values = floats(variance);
  for (std::size_t at = 0; at < values.size(); at += block_elements) {
    root_with_floor(values.subspan(at, std::min<std::size_t>(block_elements, values.size() - at)), floor);
  }
  build_mask(values);
}

FrozenVariance::FrozenVariance(const at::Tensor& root) {
  build_mask(floats(root));
}

void FrozenVariance::build_mask(std::span<const float> root) {
  if (std::all_of(root.begin(), root.end(), [](float value) { return value > 0; })) return;
  mask_.assign((root.size() + 63) / 64, 0);
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (root[i] > 0) mask_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

}  // namespace thinwire::train
