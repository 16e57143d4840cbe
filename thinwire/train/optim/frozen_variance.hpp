// The frozen root of the variance of one parameter, with its floor, and which elements have one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "thinwire/codec/fused.hpp"

namespace thinwire::train {

// Elements whose variance is zero take no part in the exchange and are never updated (their bit is sent and ignored).
// The others are raised to floor * rms over the elements of their block that have a variance: one scale per block would
// otherwise move elements of small variance by thousands of times the learning rate.
class FrozenVariance {
 public:
  // Replaces `variance` (bias-corrected) by its root with the floor applied, in place.
  FrozenVariance(const at::Tensor& variance, std::int64_t block_elements, double floor);
  // From a checkpoint: `root` is what the constructor above left.
  explicit FrozenVariance(const at::Tensor& root);

  // Empty when every element takes part.
  codec::ActiveMask active() const { return mask_; }

 private:
  void build_mask(std::span<const float> root);
  std::vector<std::uint64_t> mask_;
};

}  // namespace thinwire::train
