#include <cmath>
#include <vector>

#include "thinwire/codec/reference.hpp"

namespace thinwire::codec::reference {
namespace {

bool takes_part(ActiveMask active, std::size_t element) {
  return active.empty() || (active[element / 64] >> (element % 64)) % 2 == 1;
}

// Calls visit(first element, elements, first byte, bytes) for every block.
template <class Visit>
void each_block(const Spec& spec, Segments segments, Visit visit) {
  std::int64_t element = 0;
  std::int64_t byte = 0;
  for (std::int64_t length : segments) {
    for (std::int64_t left = length; left > 0;) {
      const std::int64_t count = left < spec.block ? left : spec.block;
      visit(element, count, byte, block_bytes(spec, count));
      element += count;
      byte += block_bytes(spec, count);
      left -= count;
    }
  }
}

bool encode_masked(const Spec& spec, std::span<const float> z, ActiveMask active, Segments segments,
                   std::span<std::byte> out) {
  bool non_finite = false;
  each_block(spec, segments, [&](std::int64_t element, std::int64_t count, std::int64_t byte, std::int64_t bytes) {
    std::vector<bool> keep;
    for (std::int64_t i = 0; i < count && !active.empty(); ++i) keep.push_back(takes_part(active, element + i));
    non_finite |= encode_block(spec, z.subspan(element, count), keep, out.subspan(byte, bytes));
  });
  return non_finite;
}

// out = C(z), new_residual = z - decode(out), or 0 where an element does not take part; z is 0 there.
bool encode_and_subtract(const Spec& spec, std::span<const float> z, ActiveMask active, Segments segments,
                         std::span<std::byte> out, std::span<float> new_residual) {
  const bool non_finite = encode_masked(spec, z, active, segments, out);
  std::vector<float> sent(z.size());
  decode(spec, out, segments, sent);
  for (std::size_t i = 0; i < z.size(); ++i) new_residual[i] = takes_part(active, i) ? z[i] - sent[i] : 0.0F;
  return non_finite;
}

}  // namespace

EncodeReport encode(const Spec& spec, std::span<const float> values, Segments segments, std::span<std::byte> out) {
  return {encode_masked(spec, values, {}, segments, out)};
}

void decode(const Spec& spec, std::span<const std::byte> bytes, Segments segments, std::span<float> values) {
  each_block(spec, segments, [&](std::int64_t element, std::int64_t count, std::int64_t byte, std::int64_t size) {
    decode_block(spec, bytes.subspan(byte, size), values.subspan(element, count));
  });
}

EncodeReport encode_feedback(const Spec& spec, std::span<const float> x, float factor, std::span<const float> residual,
                             Segments segments, std::span<std::byte> out, std::span<float> new_residual) {
  std::vector<float> z(x.size());
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = factor * x[i] + residual[i];
  return {encode_and_subtract(spec, z, {}, segments, out, new_residual)};
}

MomentumReport momentum_encode(const Spec& spec, const MomentumInput& input, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual) {
  const float gain = (1.0F - input.beta1) * input.factor;
  MomentumReport report;
  std::vector<float> z(input.gradient.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float g = input.gradient[i];
    if (takes_part(input.active, i)) {
      z[i] = (input.beta1 * input.momentum[i] + gain * g) + residual[i];
    } else {
      report.woke |= g != 0.0F;
      report.non_finite |= !std::isfinite(g);
    }
  }
  report.non_finite |= encode_and_subtract(spec, z, input.active, segments, out, new_residual);
  return report;
}

void accumulate(const Spec& spec, const Contributions& contributions, Segments segments, std::span<float> mean) {
  const float share = 1.0F / static_cast<float>(contributions.chunks.size());
  std::vector<float> decoded(mean.size());
  decode(spec, contributions.chunks[0], segments, mean);
  for (std::size_t rank = 1; rank < contributions.chunks.size(); ++rank) {
    decode(spec, contributions.chunks[rank], segments, decoded);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += decoded[i];
  }
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = takes_part(contributions.active, i) ? mean[i] * share : 0.0F;
}

EncodeReport accumulate_decode(const Spec& spec, const Contributions& contributions, std::span<const float> residual,
                               Segments segments, std::span<std::byte> out, std::span<float> new_residual) {
  std::vector<float> a(residual.size());
  accumulate(spec, contributions, segments, a);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = takes_part(contributions.active, i) ? a[i] + residual[i] : 0.0F;
  return {encode_and_subtract(spec, a, contributions.active, segments, out, new_residual)};
}

void decode_update(const Spec& spec, std::span<const std::byte> bytes, Segments segments, const FrozenState& state,
                   const AdamFrozenStep& step) {
  std::vector<float> decoded(state.momentum.size());
  decode(spec, bytes, segments, decoded);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (!takes_part(state.active, i)) continue;
    const float x = state.parameter[i];
    state.momentum[i] = decoded[i];
    state.parameter[i] = x - step.lr * (decoded[i] / (state.sqrt_v[i] + step.eps) + step.weight_decay * x);
  }
}

}  // namespace thinwire::codec::reference
