// The public functions of the room once more, written straight from their contracts over the formats' block functions:
// what every implementation is tested against, bit for bit.
#pragma once

#include "thinwire/codec/fused.hpp"
#include "thinwire/codec/spec.hpp"

namespace thinwire::codec::oracle {

EncodeReport encode(const Spec& spec, Values values, Segments segments, std::span<std::byte> out, std::uint64_t seed);
void decode(const Spec& spec, std::span<const std::byte> bytes, Segments segments, std::span<float> values);

EncodeReport encode_feedback(const Spec& spec, const FeedbackInput& input, Segments segments, std::span<std::byte> out,
                             std::span<float> new_residual);
MomentumReport momentum_encode(const Spec& spec, const MomentumInput& input, Segments segments,
                               std::span<std::byte> out, std::span<float> new_residual);
EncodeReport accumulate_decode(const Spec& spec, const Contributions& contributions, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual);
void accumulate(const Spec& spec, const Contributions& contributions, Segments segments, std::span<float> mean);
void decode_update(const Spec& spec, std::span<const std::byte> bytes, Segments segments, const FrozenState& state,
                   const AdamFrozenStep& step);

}  // namespace thinwire::codec::oracle
