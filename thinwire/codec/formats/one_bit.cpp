#include "thinwire/codec/formats/one_bit.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/one_bit.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/bits.inl.hpp"
#include "thinwire/codec/simd/canonical_sum.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace {

template <int kScale>
HWY_INLINE double sum_of(const float* HWY_RESTRICT z, std::int64_t count) {
  return canonical_sum(
      count,
      [z](std::int64_t i) {
        const VF64 value = widened(z + i);
        return kScale == kRms ? hn::Mul(value, value) : hn::Abs(value);
      },
      [z](std::int64_t i) {
        const double value = z[i];
        return kScale == kRms ? value * value : std::fabs(value);
      });
}

HWY_INLINE std::int64_t taking_part(KeepWords keep, std::int64_t count) {
  if (keep == nullptr) return count;
  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += keep[i] & 1U;
  return total;
}

HWY_INLINE void write_codes(const float* HWY_RESTRICT z, std::int64_t count, std::byte* HWY_RESTRICT out) {
  write_bits(
      count, out, [z](std::int64_t i) { return hn::Lt(hn::LoadU(F32(), z + i), hn::Zero(F32())); },
      [z](std::int64_t i) { return z[i] < 0.0F; });
}

HWY_INLINE void write_residual(const float* HWY_RESTRICT z, KeepWords keep, std::int64_t count, float scale,
                               float* HWY_RESTRICT residual) {
  const VF32 plus = hn::Set(F32(), scale);
  const VF32 minus = hn::Set(F32(), -scale);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const VF32 value = hn::LoadU(F32(), z + i);
    VF32 rest = hn::Sub(value, hn::IfThenElse(hn::Lt(value, hn::Zero(F32())), minus, plus));
    if (keep != nullptr) rest = hn::And(rest, hn::BitCast(F32(), hn::LoadU(U32(), keep + i)));
    hn::StoreU(rest, F32(), residual + i);
  }
  for (; i < count; ++i) {
    const float rest = z[i] - (z[i] < 0.0F ? -scale : scale);
    residual[i] = keep == nullptr ? rest : from_bits(to_bits(rest) & keep[i]);
  }
}

struct OneBit {
  HWY_INLINE static std::int64_t code_bytes(std::int64_t count) { return (count + 7) / 8; }

  template <class Sink>
  HWY_INLINE static void decode(const std::byte* in, std::int64_t count, float scale, Sink sink) {
    const VU32 magnitude = hn::Set(U32(), to_bits(scale));
    std::int64_t i = 0;
    for (; i + kWord <= count; i += kWord) {
      const auto word = load_little<std::uint32_t>(in + i / 8);
      for (std::int64_t part = 0; part < kWordParts; ++part)
        sink.vector(i + part * kWidth, hn::BitCast(F32(), hn::Xor(magnitude, top_bits(word, part))));
    }
    for (; i < count; ++i) sink.one(i, from_bits(to_bits(scale) ^ (bit_at(in, i) << 31)));
  }
};

template <int kScale>
bool encode_tile(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual) {
  bool any = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    const KeepWords block_keep = keep == nullptr ? nullptr : keep + at;
    const double sum = sum_of<kScale>(z + at, count);
    const bool non_finite = !std::isfinite(sum);
    const float scale = non_finite ? 0.0F : one_bit_scale(kScale, sum, taking_part(block_keep, count));
    any |= non_finite;
    store_little(out, to_bits(scale));
    write_codes(z + at, count, out + kScaleBytes);
    if (residual != nullptr) write_residual(z + at, block_keep, count, scale, residual + at);
    out += kScaleBytes + OneBit::code_bytes(count);
  }
  return any;
}

bool encode(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual) {
  return shape.spec.choice(0) == kRms ? encode_tile<kRms>(shape, z, keep, out, residual)
                                      : encode_tile<kMeanAbs>(shape, z, keep, out, residual);
}

constexpr TileKernels kKernels = {encode, decode_scaled_tile<OneBit>, add_scaled_tile<OneBit>};

}  // namespace
#endif  // not HWY_SCALAR

const TileKernels& one_bit_kernels() {
  return THINWIRE_VECTOR_KERNELS(kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(one_bit_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(one_bit_kernels)();
}

std::int64_t block_bytes(const Spec&, std::int64_t elements) {
  return kScaleBytes + (elements + 7) / 8;
}

double sum_of(std::span<const float> z, int scale) {
  return canonical_sum(z.size(), [&](std::size_t i) {
    const double value = z[i];
    return scale == kRms ? value * value : std::fabs(value);
  });
}

bool encode_block(const Spec& spec, const BlockInput& input, std::span<std::byte> out) {
  const std::span<const float> z = input.z;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < z.size(); ++i) count += input.keep == nullptr || input.keep[i] != 0 ? 1 : 0;
  const bool non_finite = any_non_finite(z);
  const float scale = non_finite ? 0.0F : one_bit_scale(spec.choice(0), sum_of(z, spec.choice(0)), count);
  store_little(out.data(), to_bits(scale));
  for (std::size_t at = 0; at < z.size(); at += 8) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 8 && at + j < z.size(); ++j) bits |= (z[at + j] < 0 ? 1U : 0U) << j;
    out[kScaleBytes + at / 8] = static_cast<std::byte>(bits);
  }
  return non_finite;
}

bool decode_block(const Spec&, std::span<const std::byte> in, std::span<float> values) {
  const float scale = from_bits(load_little<std::uint32_t>(in.data()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool negative = (std::to_integer<unsigned>(in[kScaleBytes + i / 8]) >> (i % 8)) % 2 == 1;
    values[i] = negative ? -scale : scale;
  }
  return valid_scale(scale);
}

void error_bounds(const Spec& spec, std::span<const float> block, std::span<double> bounds) {
  double sum = 0;
  for (double x : block) sum += spec.choice(0) == kRms ? x * x : std::fabs(x);
  const double mean = sum / static_cast<double>(block.size());
  const double scale = spec.choice(0) == kRms ? std::sqrt(mean) : mean;
  for (std::size_t i = 0; i < block.size(); ++i)
    bounds[i] = std::fabs(std::fabs(block[i]) - scale) + scale * 1e-6 + 2e-45;
}

constexpr std::string_view kScales[] = {"rms", "mean_abs"};
constexpr OptionRule kOptions[] = {{.key = "scale", .choices = kScales}, block_rule(kUnitElements)};
constexpr std::string_view kSamples[] = {"one_bit:scale=mean_abs", "one_bit:scale=rms,block=128", "one_bit:block=4"};

}  // namespace

const Format kOneBit = {.name = "one_bit",
                        .options = kOptions,
                        .scaled = true,
                        .block_bytes = block_bytes,
                        .encode_block = encode_block,
                        .decode_block = decode_block,
                        .error_bounds = error_bounds,
                        .vector_kernels = vector_kernels,
                        .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
