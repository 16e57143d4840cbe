// What one parameter brings to an exchange: this step's gradient and what compression has not sent yet.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "thinwire/codec/error_feedback.hpp"
#include "thinwire/codec/fused.hpp"
#include "thinwire/train/ddp/layout.hpp"

namespace thinwire::train {

// Lent by the optimizer for the momentum route; must stay valid and unchanged while a step is open.
struct MomentumView {
  std::span<const float> momentum;
  float beta1 = 0.9F;
  codec::ActiveMask active;  // empty: every element has a frozen variance above zero
};

// The trainer's thread writes `source` and `used` before it hands a bucket over; afterwards the communication thread
// owns the whole struct until the exchange has ended.
struct GradientState {
  at::Tensor source;  // float32, contiguous, of the parameter's shape; undefined: no gradient in this step
  bool used = false;  // some backward of this step produced a gradient
  bool woke = false;  // an element without variance got a gradient (momentum route)
  MomentumView momentum;
  std::unique_ptr<codec::ErrorFeedback> worker;  // of the whole parameter; null where nothing is compressed
};

// What the owner of a range of a parameter has not sent yet.
struct ServerResidual {
  Piece piece;
  std::unique_ptr<codec::ErrorFeedback> residual;
};

inline std::span<const float> gradient_of(const GradientState& state, const Piece& piece) {
  return {state.source.const_data_ptr<float>() + piece.offset, static_cast<std::size_t>(piece.numel)};
}

}  // namespace thinwire::train
