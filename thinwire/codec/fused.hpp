// The loops that move gradients, each one pass over memory, with error feedback (docs/algorithms.md).
// All of them write new state beside the old: committed residuals and momentum are never touched (see ErrorFeedback).
// Thread safe; spans must not overlap except where said. They know the codecs of make_codec only (else kUnavailable).
// Throws Error kInvalidArgument when sizes do not fit each other, kCorrupt as Codec::decode does (outputs are then
// unspecified).
//
// Every formula is computed in float, left to right as written, without fused multiply-add: the same bits on every
// machine for inputs without NaN. A block with a NaN or an infinity in z is reported, decodes to zeros (bf16 and fp32
// carry the value itself) and spoils no other block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "thinwire/codec/codec.hpp"

namespace thinwire::codec {

// One bit per element, set where the element takes part; element i is bit i % 64 of word i / 64. Empty: all take part.
// Elements that do not take part stay outside the scale, are sent as +0 and ignored, their residual is 0.
using ActiveMask = std::span<const std::uint64_t>;

struct FeedbackInput {
  Values x;
  float factor = 1.0F;  // clip factor / loss scale
  std::span<const float> residual;
  std::uint64_t seed = 0;  // as of Codec::encode
};

// z = factor * x + residual ; bytes = C(z) ; new_residual = z - decode(bytes).
// `new_residual` may be the same memory as `x` where that is fp32.
EncodeReport encode_feedback(const Codec& codec, const FeedbackInput& input, Segments segments,
                             std::span<std::byte> out, std::span<float> new_residual);

struct MomentumInput {
  Values gradient;
  std::span<const float> momentum;
  std::span<const float> residual;
  float beta1 = 0.9F;
  float factor = 1.0F;     // clip factor / loss scale
  ActiveMask active = {};  // element 0 is the first of the span
  std::uint64_t seed = 0;
};

// m_i = beta1 * m + ((1 - beta1) * factor) * g, never stored ; z = m_i + residual ; bytes = C(z) ;
// new_residual = z - decode(bytes), which may be the same memory as the gradient where that is fp32.
// Sets `woke` in the report when an element that does not take part has a non-zero gradient, and `non_finite` also for
// a gradient that does not take part.
struct MomentumReport {
  bool non_finite = false;
  bool woke = false;
};
MomentumReport momentum_encode(const Codec& codec, const MomentumInput& input, Segments segments,
                               std::span<std::byte> out, std::span<float> new_residual);

// At a chunk's owner: a = (1/n) * sum of decoded contributions + residual ; out = C(a) ; new_residual = a -
// decode(out). `contributions` holds n >= 1 encoded chunks; they are added in the order of the span, the same on every
// owner; 1/n is a float. `new_residual` may be the same memory as `residual`.
struct Contributions {
  std::span<const std::span<const std::byte>> chunks;
  ActiveMask active;
  std::uint64_t seed = 0;  // of the encoding; `accumulate` does not use it
};
EncodeReport accumulate_decode(const Codec& codec, const Contributions& contributions, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual);

// The first half of it, for the reduce-scatter form, which stops after the first hop: mean = (1/n) * sum of decoded
// contributions, in the order of the span; +0 where an element does not take part.
void accumulate(const Codec& codec, const Contributions& contributions, Segments segments, std::span<float> mean);

struct AdamFrozenStep {
  float lr = 1e-3F;
  float eps = 1e-8F;
  float weight_decay = 0.0F;  // decoupled
};

// Decodes the agreed momentum and takes the step of 1-bit Adam's second stage in the same pass:
//   m = decode(bytes) ; x -= lr * (m / (sqrt_v + eps) + weight_decay * x), where `active`; elsewhere m and x stay.
// `sqrt_v` is the frozen root of the variance with its floor already applied.
struct FrozenState {
  std::span<float> parameter;
  std::span<float> momentum;
  std::span<const float> sqrt_v;
  ActiveMask active;
};
void decode_update(const Codec& codec, std::span<const std::byte> bytes, Segments segments, const FrozenState& state,
                   const AdamFrozenStep& step);

}  // namespace thinwire::codec
