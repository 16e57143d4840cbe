#include "tests/codec/oracle.hpp"

#include <cmath>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/format.hpp"
#include "thinwire/codec/half.hpp"

namespace thinwire::codec::oracle {
namespace {

bool takes_part(ActiveMask active, std::size_t element) {
  return active.empty() || (active[element / 64] >> (element % 64)) % 2 == 1;
}

std::vector<float> widened(Values values) {
  std::vector<float> wide(values.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (values.dtype() == Dtype::kFp32) wide[i] = values.fp32()[i];
    if (values.dtype() == Dtype::kBf16) wide[i] = from_bf16(values.bf16()[i].bits);
    if (values.dtype() == Dtype::kFp16) wide[i] = from_fp16(values.fp16()[i].bits);
  }
  return wide;
}

// Calls visit(first element, elements, first byte, bytes) for every block.
template <class Visit>
void each_block(const Spec& spec, Segments segments, Visit visit) {
  std::int64_t element = 0;
  std::int64_t byte = 0;
  for (std::int64_t length : segments) {
    for (std::int64_t left = length; left > 0;) {
      const std::int64_t count = left < spec.block ? left : spec.block;
      const std::int64_t bytes = spec.format->block_bytes(spec, count);
      visit(element, count, byte, bytes);
      element += count;
      byte += bytes;
      left -= count;
    }
  }
}

struct Masked {
  std::span<const float> z;
  ActiveMask active;
  std::uint64_t seed;
};

bool encode_masked(const Spec& spec, const Masked& input, Segments segments, std::span<std::byte> out) {
  bool non_finite = false;
  each_block(spec, segments, [&](std::int64_t element, std::int64_t count, std::int64_t byte, std::int64_t bytes) {
    std::vector<std::uint32_t> keep;
    for (std::int64_t i = 0; i < count && !input.active.empty(); ++i)
      keep.push_back(takes_part(input.active, element + i) ? ~0U : 0U);
    const BlockInput block{input.z.subspan(element, count), keep.empty() ? nullptr : keep.data(), input.seed};
    non_finite |= spec.format->encode_block(spec, block, out.subspan(byte, bytes));
  });
  return non_finite;
}

// out = C(z), new_residual = z - decode(out), or 0 where an element does not take part; z is 0 there.
bool encode_and_subtract(const Spec& spec, const Masked& input, Segments segments, std::span<std::byte> out,
                         std::span<float> new_residual) {
  const bool non_finite = encode_masked(spec, input, segments, out);
  std::vector<float> sent(input.z.size());
  decode(spec, out, segments, sent);
  for (std::size_t i = 0; i < sent.size(); ++i)
    new_residual[i] = takes_part(input.active, i) ? input.z[i] - sent[i] : 0.0F;
  return non_finite;
}

}  // namespace

EncodeReport encode(const Spec& spec, Values values, Segments segments, std::span<std::byte> out, std::uint64_t seed) {
  const std::vector<float> z = widened(values);
  return {encode_masked(spec, {z, {}, seed}, segments, out)};
}

void decode(const Spec& spec, std::span<const std::byte> bytes, Segments segments, std::span<float> values) {
  bool valid = true;
  each_block(spec, segments, [&](std::int64_t element, std::int64_t count, std::int64_t byte, std::int64_t size) {
    valid &= spec.format->decode_block(spec, bytes.subspan(byte, size), values.subspan(element, count));
  });
  if (!valid) fail(ErrorCode::kCorrupt, {.place = "oracle", .what = "block", .got = "", .want = "", .hint = ""});
}

EncodeReport encode_feedback(const Spec& spec, const FeedbackInput& input, Segments segments, std::span<std::byte> out,
                             std::span<float> new_residual) {
  std::vector<float> z = widened(input.x);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = input.factor * z[i] + input.residual[i];
  return {encode_and_subtract(spec, {z, {}, input.seed}, segments, out, new_residual)};
}

MomentumReport momentum_encode(const Spec& spec, const MomentumInput& input, Segments segments,
                               std::span<std::byte> out, std::span<float> new_residual) {
  const float gain = (1.0F - input.beta1) * input.factor;
  const std::vector<float> gradient = widened(input.gradient);
  MomentumReport report;
  std::vector<float> z(gradient.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (takes_part(input.active, i)) {
      z[i] = (input.beta1 * input.momentum[i] + gain * gradient[i]) + input.residual[i];
    } else {
      report.woke |= gradient[i] != 0.0F;
      report.non_finite |= !std::isfinite(gradient[i]);
    }
  }
  report.non_finite |= encode_and_subtract(spec, {z, input.active, input.seed}, segments, out, new_residual);
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
  return {encode_and_subtract(spec, {a, contributions.active, contributions.seed}, segments, out, new_residual)};
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

}  // namespace thinwire::codec::oracle
