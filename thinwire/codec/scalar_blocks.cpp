#include <array>
#include <bit>
#include <cmath>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/reference.hpp"

namespace thinwire::codec::reference {
namespace {

void write_word(std::span<std::byte> out, std::size_t at, std::uint32_t word, int bytes) {
  for (int i = 0; i < bytes; ++i) out[at + i] = static_cast<std::byte>(word >> (8 * i));
}

std::uint32_t read_word(std::span<const std::byte> in, std::size_t at, int bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < bytes; ++i) word |= std::to_integer<std::uint32_t>(in[at + i]) << (8 * i);
  return word;
}

void write_scale(std::span<std::byte> out, float scale) {
  write_word(out, 0, std::bit_cast<std::uint32_t>(scale), 4);
}

float read_scale(std::span<const std::byte> in) {
  const float scale = std::bit_cast<float>(read_word(in, 0, 4));
  if (std::isfinite(scale) && !std::signbit(scale)) return scale;
  fail(ErrorCode::kCorrupt,
       {.place = "codec::reference", .what = "scale of a block", .got = std::to_string(scale), .want = "", .hint = ""});
}

std::uint32_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (std::isnan(value)) return sign | 0x7FC0U;
  if (std::isinf(value)) return sign | 0x7F80U;
  const std::uint32_t kept = (bits >> 16) & 0x7FFFU;
  const std::uint32_t dropped = bits & 0xFFFFU;
  const bool up = dropped > 0x8000U || (dropped == 0x8000U && kept % 2 == 1);
  const std::uint32_t rounded = kept + (up ? 1 : 0);
  return sign | (rounded >= 0x7F80U ? 0x7F7FU : rounded);
}

double canonical_sum(std::span<const float> z, BlockScale scale) {
  std::array<double, 16> lane{};
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double value = z[i];
    lane[i % 16] += scale == BlockScale::kRms ? value * value : std::fabs(value);
  }
  for (std::size_t width = 8; width > 0; width /= 2)
    for (std::size_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

bool any_non_finite(std::span<const float> z) {
  for (float value : z)
    if (!std::isfinite(value)) return true;
  return false;
}

void encode_one_bit(const Spec& spec, std::span<const float> z, const std::vector<bool>& keep,
                    std::span<std::byte> out) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < z.size(); ++i) count += keep.empty() || keep[i] ? 1 : 0;
  float scale = 0;
  if (count > 0 && !any_non_finite(z)) {
    const double mean = canonical_sum(z, spec.scale) / static_cast<double>(count);
    scale = static_cast<float>(spec.scale == BlockScale::kRms ? std::sqrt(mean) : mean);
  }
  write_scale(out, scale);
  for (std::size_t i = 4; i < out.size(); ++i) out[i] = std::byte{0};
  for (std::size_t i = 0; i < z.size(); ++i)
    if (z[i] < 0) out[4 + i / 8] |= static_cast<std::byte>(1U << (i % 8));
}

// The codes of a block, -levels ... levels.
std::vector<int> quantised(std::span<const float> z, int levels, float* scale) {
  float absmax = 0;
  if (!any_non_finite(z))
    for (float value : z) absmax = std::max(absmax, std::fabs(value));
  *scale = absmax;
  std::vector<int> codes(z.size(), 0);
  if (absmax == 0) return codes;
  const float pre = absmax < 0x1p-60F ? 0x1p64F : 1.0F;
  const float gain = static_cast<float>(levels) / (absmax * pre);
  for (std::size_t i = 0; i < z.size(); ++i) codes[i] = static_cast<int>(std::nearbyint((z[i] * pre) * gain));
  return codes;
}

float dequantised(int code, int levels, float absmax) {
  const float step = 1.0F / static_cast<float>(levels);
  return absmax * (static_cast<float>(code) * step);
}

void encode_int8(std::span<const float> z, std::span<std::byte> out) {
  float absmax = 0;
  const std::vector<int> codes = quantised(z, 127, &absmax);
  write_scale(out, absmax);
  for (std::size_t i = 0; i < z.size(); ++i) out[4 + i] = static_cast<std::byte>(codes[i]);
}

void encode_int4(std::span<const float> z, std::span<std::byte> out) {
  float absmax = 0;
  std::vector<int> codes = quantised(z, 7, &absmax);
  write_scale(out, absmax);
  const std::size_t half = (z.size() + 1) / 2;
  codes.resize(2 * half, 0);
  for (std::size_t j = 0; j < half; ++j)
    out[4 + j] = static_cast<std::byte>((codes[j] + 8) + 16 * (codes[half + j] + 8));
}

}  // namespace

bool encode_block(const Spec& spec, std::span<const float> z, const std::vector<bool>& keep, std::span<std::byte> out) {
  switch (spec.kind) {
    case Kind::kFp32:
      for (std::size_t i = 0; i < z.size(); ++i) write_word(out, 4 * i, std::bit_cast<std::uint32_t>(z[i]), 4);
      break;
    case Kind::kBf16:
      for (std::size_t i = 0; i < z.size(); ++i) write_word(out, 2 * i, bf16_of(z[i]), 2);
      break;
    case Kind::kInt8:
      encode_int8(z, out);
      break;
    case Kind::kInt4:
      encode_int4(z, out);
      break;
    case Kind::kOneBit:
      encode_one_bit(spec, z, keep, out);
      break;
  }
  return any_non_finite(z);
}

void decode_block(const Spec& spec, std::span<const std::byte> in, std::span<float> values) {
  const std::size_t half = (values.size() + 1) / 2;
  const bool scaled = spec.kind == Kind::kInt8 || spec.kind == Kind::kInt4 || spec.kind == Kind::kOneBit;
  const float scale = scaled ? read_scale(in) : 0.0F;
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (spec.kind) {
      case Kind::kFp32:
        values[i] = std::bit_cast<float>(read_word(in, 4 * i, 4));
        break;
      case Kind::kBf16:
        values[i] = std::bit_cast<float>(read_word(in, 2 * i, 2) << 16);
        break;
      case Kind::kInt8:
        values[i] = dequantised(static_cast<std::int8_t>(in[4 + i]), 127, scale);
        break;
      case Kind::kInt4: {
        const auto byte = std::to_integer<int>(in[4 + i % half]);
        values[i] = dequantised((i < half ? byte % 16 : byte / 16) - 8, 7, scale);
        break;
      }
      case Kind::kOneBit: {
        const bool negative = (std::to_integer<unsigned>(in[4 + i / 8]) >> (i % 8)) % 2 == 1;
        values[i] = negative ? -scale : scale;
        break;
      }
    }
  }
}

}  // namespace thinwire::codec::reference
