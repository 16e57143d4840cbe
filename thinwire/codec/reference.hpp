// The same codecs and loops once more, one element at a time: what the kernels are tested against, bit for bit. Slow.
// Contracts as in codec.hpp and fused.hpp. Private to the room and its tests.
#pragma once

#include "thinwire/codec/fused.hpp"
#include "thinwire/codec/spec.hpp"

namespace thinwire::codec::reference {

// One block. `keep` is empty (all take part) or has one entry per element; elements that do not take part are 0 in z.
bool encode_block(const Spec& spec, std::span<const float> z, const std::vector<bool>& keep, std::span<std::byte> out);
void decode_block(const Spec& spec, std::span<const std::byte> in, std::span<float> values);

EncodeReport encode(const Spec& spec, std::span<const float> values, Segments segments, std::span<std::byte> out);
void decode(const Spec& spec, std::span<const std::byte> bytes, Segments segments, std::span<float> values);

EncodeReport encode_feedback(const Spec& spec, std::span<const float> x, float factor, std::span<const float> residual,
                             Segments segments, std::span<std::byte> out, std::span<float> new_residual);
MomentumReport momentum_encode(const Spec& spec, const MomentumInput& input, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual);
EncodeReport accumulate_decode(const Spec& spec, const Contributions& contributions, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual);
void accumulate(const Spec& spec, const Contributions& contributions, Segments segments, std::span<float> mean);
void decode_update(const Spec& spec, std::span<const std::byte> bytes, Segments segments, const FrozenState& state,
                   const AdamFrozenStep& step);

}  // namespace thinwire::codec::reference
