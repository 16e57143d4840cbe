#include "thinwire/codec/formats/eden.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "thinwire/base/hash32.hpp"
#include "thinwire/codec/formats/canonical_sum.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/eden.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/bits.inl.hpp"
#include "thinwire/codec/simd/canonical_sum.inl.hpp"

#ifndef THINWIRE_CODEC_EDEN_ONCE
#define THINWIRE_CODEC_EDEN_ONCE
namespace thinwire::codec {
namespace {

// What every implementation shares: numbers of a block and of its transforms.
struct EdenTransform {
  std::int64_t first;  // element
  std::int64_t size;   // a power of two
  std::uint32_t key;
  float root;  // 1 / sqrt(size)
};

struct EdenTransforms {
  EdenTransform all[2 * kEdenRounds];
  int count = 0;

  EdenTransforms(std::int64_t elements, std::uint32_t seed) {
    const auto size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(elements)));
    const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
    for (int round = 0; round < kEdenRounds; ++round) {
      for (const std::int64_t first : {std::int64_t{0}, elements - size}) {
        all[count++] = {first, size, seed, root};
        seed = hash32(seed);
        if (size == elements) break;  // the second would be the first
      }
    }
  }
};

// x * down[0] * down[1] has its largest magnitude in [1, 2).
struct EdenPower {
  int exponent;
  float down[2];

  explicit EdenPower(float largest) : exponent(largest > 0 ? std::ilogb(largest) : 0) {
    const int half = -exponent / 2;
    down[0] = std::ldexp(1.0F, half);
    down[1] = std::ldexp(1.0F, -exponent - half);
  }
};

struct EdenSums {
  double x2;  // |x|^2
  double yq;  // <y, Q>
  double q2;  // |Q|^2
};

float eden_scale(const Spec& spec, const EdenSums& sums, int exponent) {
  if (sums.x2 == 0) return 0;
  const double scale = spec.choice(kEdenScale) == kUnbiased ? sums.x2 / sums.yq : sums.yq / sums.q2;
  return static_cast<float>(
      std::min(std::ldexp(scale, exponent), static_cast<double>(std::numeric_limits<float>::max())));
}

// z = y * gain is normal.
float eden_gain(double x2, std::int64_t elements) {
  return x2 == 0 ? 0.0F : static_cast<float>(std::sqrt(static_cast<double>(elements) / x2));
}

std::uint32_t eden_seed(std::uint64_t seed) {
  return hash32(static_cast<std::uint32_t>(seed) ^ hash32(static_cast<std::uint32_t>(seed >> 32)));
}

std::int64_t eden_plane_bytes(std::int64_t elements) {
  return (elements + 7) / 8;
}

int eden_bits(const Spec& spec) {
  return static_cast<int>(spec.options[kEdenBits]);
}

std::int64_t eden_block_bytes(const Spec& spec, std::int64_t elements) {
  return kEdenHeaderBytes + eden_bits(spec) * eden_plane_bytes(elements);
}

float eden_clamped(float value) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::clamp(value, -kLargest, kLargest);
}

}  // namespace
}  // namespace thinwire::codec
#endif  // once

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace {

using F32x4 = hn::CappedTag<float, 4>;

// Butterflies of distance 1 and 2, inside vectors of D.
template <class D>
HWY_INLINE void inner_stages(D d, float* HWY_RESTRICT v, std::int64_t size) {
  const hn::RebindToUnsigned<D> du;
  const auto upper = hn::RebindMask(d, hn::Ne(hn::And(hn::Iota(du, 0), hn::Set(du, 2U)), hn::Zero(du)));
  for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::MaxLanes(d))) {
    auto a = hn::LoadU(d, v + i);
    auto b = hn::Shuffle2301(a);
    a = hn::OddEven(hn::Sub(b, a), hn::Add(a, b));
    b = hn::Shuffle1032(a);
    hn::StoreU(hn::IfThenElse(upper, hn::Sub(b, a), hn::Add(a, b)), d, v + i);
  }
}

template <class D>
HWY_INLINE void outer_stage(D d, float* HWY_RESTRICT v, std::int64_t size, std::int64_t distance) {
  for (std::int64_t base = 0; base < size; base += 2 * distance) {
    for (std::int64_t i = base; i < base + distance; i += static_cast<std::int64_t>(hn::MaxLanes(d))) {
      const auto a = hn::LoadU(d, v + i);
      const auto b = hn::LoadU(d, v + i + distance);
      hn::StoreU(hn::Add(a, b), d, v + i);
      hn::StoreU(hn::Sub(a, b), d, v + i + distance);
    }
  }
}

HWY_INLINE void hadamard(float* HWY_RESTRICT v, std::int64_t size) {
  if (size < 4) {
    if (size == 2) {
      const float a = v[0];
      const float b = v[1];
      v[0] = a + b;
      v[1] = a - b;
    }
    return;
  }
  const bool wide = kWidth == 4 || size >= kWidth;
  if (!wide) inner_stages(F32x4(), v, size);
  if (wide) inner_stages(F32(), v, size);
  std::int64_t distance = 4;
  for (; distance < std::min(size, kWidth); distance *= 2) outer_stage(F32x4(), v, size, distance);
  for (; distance < size; distance *= 2) outer_stage(F32(), v, size, distance);
}

HWY_INLINE void multiply_by(float* HWY_RESTRICT v, std::int64_t count, float factor) {
  const VF32 factors = hn::Set(F32(), factor);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(hn::Mul(hn::LoadU(F32(), v + i), factors), F32(), v + i);
  for (; i < count; ++i) v[i] *= factor;
}

HWY_INLINE void flip_signs(float* HWY_RESTRICT v, std::int64_t count, std::uint32_t key) {
  std::int64_t i = 0;
  for (; i + kWord <= count; i += kWord) {
    const std::uint32_t word = hash32(key + static_cast<std::uint32_t>(i / kWord));
    for (std::int64_t part = 0; part < kWordParts; ++part) {
      float* at = v + i + part * kWidth;
      const VU32 flipped = hn::Xor(hn::BitCast(U32(), hn::LoadU(F32(), at)), top_bits(word, part));
      hn::StoreU(hn::BitCast(F32(), flipped), F32(), at);
    }
  }
  if (i == count) return;
  const std::uint32_t word = hash32(key + static_cast<std::uint32_t>(i / kWord));
  for (; i < count; ++i) v[i] = from_bits(to_bits(v[i]) ^ (((word >> (i % kWord)) & 1U) << 31));
}

HWY_INLINE void rotate(float* v, const EdenTransforms& transforms) {
  for (int t = 0; t < transforms.count; ++t) {
    const EdenTransform& one = transforms.all[t];
    flip_signs(v + one.first, one.size, one.key);
    hadamard(v + one.first, one.size);
    multiply_by(v + one.first, one.size, one.root);
  }
}

HWY_INLINE void rotate_back(float* v, const EdenTransforms& transforms) {
  for (int t = transforms.count - 1; t >= 0; --t) {
    const EdenTransform& one = transforms.all[t];
    hadamard(v + one.first, one.size);
    multiply_by(v + one.first, one.size, one.root);
    flip_signs(v + one.first, one.size, one.key);
  }
}

// The index of a magnitude: how many thresholds are below it.
HWY_INLINE VU32 index_of(VF32 magnitude, const EdenLevels& levels, int count) {
  VU32 index = hn::Zero(U32());
  for (int k = 0; k + 1 < count; ++k) {
    const auto above = hn::RebindMask(U32(), hn::Gt(magnitude, hn::Set(F32(), levels.threshold[k])));
    index = hn::Add(index, hn::IfThenElseZero(above, hn::Set(U32(), 1U)));
  }
  return index;
}

HWY_INLINE VF32 centroid_of(VU32 index, const EdenLevels& levels, int count) {
  VF32 value = hn::Set(F32(), levels.centroid[0]);
  for (int k = 1; k < count; ++k) {
    const auto here = hn::RebindMask(F32(), hn::Eq(index, hn::Set(U32(), static_cast<std::uint32_t>(k))));
    value = hn::IfThenElse(here, hn::Set(F32(), levels.centroid[k]), value);
  }
  return value;
}

// y becomes Q with its signs; `indices` the index of every element.
HWY_INLINE void quantise(const float* HWY_RESTRICT y, std::int64_t count, float gain, int bits, float* HWY_RESTRICT q,
                         std::uint32_t* HWY_RESTRICT indices) {
  const EdenLevels& levels = kEdenLevels[bits - 1];
  const int size = 1 << (bits - 1);
  const VF32 gains = hn::Set(F32(), gain);
  std::int64_t i = 0;
  for (; i < count; i += kWidth) {  // buffers are whole vectors; what is beyond count is not used
    const VF32 z = hn::Mul(hn::LoadU(F32(), y + i), gains);
    const VU32 index = index_of(hn::Abs(z), levels, size);
    hn::StoreU(index, U32(), indices + i);
    const VF32 value = centroid_of(index, levels, size);
    hn::StoreU(hn::IfThenElse(hn::Lt(z, hn::Zero(F32())), hn::Neg(value), value), F32(), q + i);
  }
}

HWY_INLINE void write_planes(const float* HWY_RESTRICT q, const std::uint32_t* HWY_RESTRICT indices, std::int64_t count,
                             int bits, std::byte* HWY_RESTRICT out) {
  write_bits(
      count, out, [q](std::int64_t i) { return hn::Lt(hn::LoadU(F32(), q + i), hn::Zero(F32())); },
      [q](std::int64_t i) { return q[i] < 0; });
  for (int bit = 0; bit + 1 < bits; ++bit) {
    out += eden_plane_bytes(count);
    const std::uint32_t tested = 1U << bit;
    write_bits(
        count, out,
        [indices, tested](std::int64_t i) {
          return hn::RebindMask(F32(), hn::TestBit(hn::LoadU(U32(), indices + i), hn::Set(U32(), tested)));
        },
        [indices, tested](std::int64_t i) { return (indices[i] & tested) != 0; });
  }
}

HWY_INLINE void read_planes(const std::byte* HWY_RESTRICT in, std::int64_t count, int bits, float* HWY_RESTRICT q) {
  const EdenLevels& levels = kEdenLevels[bits - 1];
  const std::int64_t plane = eden_plane_bytes(count);
  std::int64_t i = 0;
  for (; i + kWord <= count; i += kWord) {
    for (std::int64_t part = 0; part < kWordParts; ++part) {
      VU32 index = hn::Zero(U32());
      for (int bit = 0; bit + 1 < bits; ++bit) {
        const auto word = load_little<std::uint32_t>(in + (bit + 1) * plane + i / 8);
        index = hn::Or(index, hn::ShiftRightSame(top_bits(word, part), 31 - bit));
      }
      const VU32 sign = top_bits(load_little<std::uint32_t>(in + i / 8), part);
      const VF32 value = centroid_of(index, levels, 1 << (bits - 1));
      hn::StoreU(hn::BitCast(F32(), hn::Xor(hn::BitCast(U32(), value), sign)), F32(), q + i + part * kWidth);
    }
  }
  for (; i < count; ++i) {
    std::uint32_t index = 0;
    for (int bit = 0; bit + 1 < bits; ++bit) index |= bit_at(in + (bit + 1) * plane, i) << bit;
    q[i] = from_bits(to_bits(levels.centroid[index]) ^ (bit_at(in, i) << 31));
  }
}

HWY_INLINE double dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t count) {
  return canonical_sum(
      count, [a, b](std::int64_t i) { return hn::Mul(widened(a + i), widened(b + i)); },
      [a, b](std::int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

// Calls use(i, decoded lanes) and use_one(i, decoded element), given Q. Spoils q.
template <class Sink>
HWY_INLINE void estimate(float* HWY_RESTRICT q, std::int64_t count, const EdenTransforms& transforms, float scale,
                         Sink sink) {
  rotate_back(q, transforms);
  const VF32 scales = hn::Set(F32(), scale);
  const VF32 largest = hn::Set(F32(), std::numeric_limits<float>::max());
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const VF32 value = hn::Mul(hn::LoadU(F32(), q + i), scales);
    sink.vector(i, hn::Max(hn::Min(value, largest), hn::Neg(largest)));
  }
  for (; i < count; ++i) sink.one(i, eden_clamped(q[i] * scale));
}

// residual = z - value, 0 where an element does not take part.
struct ResidualSink {
  const float* HWY_RESTRICT z;
  KeepWords keep;
  float* HWY_RESTRICT residual;
  HWY_INLINE void vector(std::int64_t i, VF32 value) const {
    VF32 rest = hn::Sub(hn::LoadU(F32(), z + i), value);
    if (keep != nullptr) rest = hn::And(rest, hn::BitCast(F32(), hn::LoadU(U32(), keep + i)));
    hn::StoreU(rest, F32(), residual + i);
  }
  HWY_INLINE void one(std::int64_t i, float value) const {
    residual[i] = keep == nullptr || keep[i] != 0 ? z[i] - value : 0.0F;
  }
};

struct Buffers {
  HWY_ALIGN float y[kUnitElements];
  HWY_ALIGN float q[kUnitElements];
  HWY_ALIGN std::uint32_t indices[kUnitElements];
};

HWY_INLINE void encode_block(const TileShape& shape, std::int64_t count, const ResidualSink& sink, std::byte* out,
                             Buffers& buffers) {
  const std::uint32_t seed = eden_seed(shape.seed);
  const EdenPower power(from_bits(largest_magnitude(sink.z, count)));
  const EdenTransforms transforms(count, seed);
  const int bits = eden_bits(shape.spec);
  std::copy_n(sink.z, count, buffers.y);
  for (const float down : power.down) multiply_by(buffers.y, count, down);
  EdenSums sums{.x2 = dot(buffers.y, buffers.y, count), .yq = 0, .q2 = 0};
  rotate(buffers.y, transforms);
  quantise(buffers.y, count, eden_gain(sums.x2, count), bits, buffers.q, buffers.indices);
  sums.yq = dot(buffers.y, buffers.q, count);
  sums.q2 = dot(buffers.q, buffers.q, count);
  const float scale = eden_scale(shape.spec, sums, power.exponent);
  store_little(out, to_bits(scale));
  store_little(out + kScaleBytes, seed);
  write_planes(buffers.q, buffers.indices, count, bits, out + kEdenHeaderBytes);
  if (sink.residual != nullptr) estimate(buffers.q, count, transforms, scale, sink);
}

bool encode(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual) {
  Buffers buffers;
  bool non_finite = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    const std::int64_t bytes = eden_block_bytes(shape.spec, count);
    if (not_finite(largest_magnitude(z + at, count))) {
      non_finite = true;
      write_meaningless({out, static_cast<std::size_t>(bytes)}, 0);
      if (residual != nullptr)
        for (std::int64_t i = at; i < at + count; ++i) residual[i] = keep == nullptr || keep[i] != 0 ? z[i] : 0.0F;
    } else {
      const ResidualSink sink{z + at, keep == nullptr ? nullptr : keep + at,
                              residual == nullptr ? nullptr : residual + at};
      encode_block(shape, count, sink, out, buffers);
    }
    out += bytes;
  }
  return non_finite;
}

template <class Sink>
HWY_INLINE bool each(const TileShape& shape, const std::byte* in, Sink sink) {
  HWY_ALIGN float q[kUnitElements];
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    const float scale = from_bits(load_little<std::uint32_t>(in));
    valid &= valid_scale(scale);
    const EdenTransforms transforms(count, load_little<std::uint32_t>(in + kScaleBytes));
    read_planes(in + kEdenHeaderBytes, count, eden_bits(shape.spec), q);
    estimate(q, count, transforms, scale, sink.from(at));
    in += eden_block_bytes(shape.spec, count);
  }
  return valid;
}

bool decode(const TileShape& shape, const std::byte* in, float* values) {
  return each(shape, in, StoreSink{values});
}
bool add(const TileShape& shape, const std::byte* in, float* sum) {
  return each(shape, in, AddSink{sum});
}

constexpr TileKernels kKernels = {encode, decode, add};

}  // namespace
#endif  // not HWY_SCALAR

const TileKernels& eden_kernels() {
  return THINWIRE_VECTOR_KERNELS(kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

namespace thinwire::codec {
namespace {

HWY_EXPORT(eden_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(eden_kernels)();
}

void flip_signs(std::span<float> v, std::uint32_t key) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if ((hash32(key + static_cast<std::uint32_t>(i / 32)) >> (i % 32)) % 2 == 1) v[i] = -v[i];
}

void hadamard(std::span<float> v) {
  for (std::size_t distance = 1; distance < v.size(); distance *= 2) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      if ((i & distance) != 0) continue;
      const float a = v[i];
      const float b = v[i + distance];
      v[i] = a + b;
      v[i + distance] = a - b;
    }
  }
}

void multiply(std::span<float> v, float factor) {
  for (float& value : v) value *= factor;
}

std::span<float> part_of(std::span<float> v, const EdenTransform& transform) {
  return v.subspan(static_cast<std::size_t>(transform.first), static_cast<std::size_t>(transform.size));
}

void rotate(std::span<float> v, const EdenTransforms& transforms) {
  for (int t = 0; t < transforms.count; ++t) {
    const std::span<float> part = part_of(v, transforms.all[t]);
    flip_signs(part, transforms.all[t].key);
    hadamard(part);
    multiply(part, transforms.all[t].root);
  }
}

void rotate_back(std::span<float> v, const EdenTransforms& transforms) {
  for (int t = transforms.count - 1; t >= 0; --t) {
    const std::span<float> part = part_of(v, transforms.all[t]);
    hadamard(part);
    multiply(part, transforms.all[t].root);
    flip_signs(part, transforms.all[t].key);
  }
}

double dot(std::span<const float> a, std::span<const float> b) {
  return canonical_sum(a.size(), [&](std::size_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

void write_bit(std::span<std::byte> plane, std::size_t i, bool bit) {
  if (bit) plane[i / 8] |= static_cast<std::byte>(1U << (i % 8));
}

bool read_bit(std::span<const std::byte> plane, std::size_t i) {
  return (std::to_integer<unsigned>(plane[i / 8]) >> (i % 8)) % 2 == 1;
}

bool encode_block(const Spec& spec, const BlockInput& input, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  if (any_non_finite(input.z)) return true;
  const std::size_t n = input.z.size();
  const std::uint32_t seed = eden_seed(input.seed);
  const int bits = eden_bits(spec);
  const EdenLevels& levels = kEdenLevels[bits - 1];
  float largest = 0;
  for (float value : input.z) largest = std::max(largest, std::fabs(value));
  const EdenPower power(largest);
  std::vector<float> y(input.z.begin(), input.z.end());
  for (const float down : power.down) multiply(y, down);
  EdenSums sums{.x2 = dot(y, y), .yq = 0, .q2 = 0};
  rotate(y, EdenTransforms(static_cast<std::int64_t>(n), seed));
  const float gain = eden_gain(sums.x2, static_cast<std::int64_t>(n));
  const auto plane_bytes = static_cast<std::size_t>(eden_plane_bytes(static_cast<std::int64_t>(n)));
  std::vector<float> q(n);
  for (std::size_t i = 0; i < n; ++i) {
    const float z = y[i] * gain;
    unsigned index = 0;
    for (int k = 0; k + 1 < 1 << (bits - 1); ++k) index += std::fabs(z) > levels.threshold[k] ? 1 : 0;
    q[i] = z < 0 ? -levels.centroid[index] : levels.centroid[index];
    write_bit(out.subspan(kEdenHeaderBytes), i, z < 0);
    for (int bit = 0; bit + 1 < bits; ++bit)
      write_bit(out.subspan(kEdenHeaderBytes + (bit + 1) * plane_bytes), i, (index >> bit) % 2 == 1);
  }
  sums.yq = dot(y, q);
  sums.q2 = dot(q, q);
  store_little(out.data(), to_bits(eden_scale(spec, sums, power.exponent)));
  store_little(out.data() + kScaleBytes, seed);
  return false;
}

bool decode_block(const Spec& spec, std::span<const std::byte> in, std::span<float> values) {
  const float scale = from_bits(load_little<std::uint32_t>(in.data()));
  const auto seed = load_little<std::uint32_t>(in.data() + kScaleBytes);
  const int bits = eden_bits(spec);
  const auto plane_bytes = static_cast<std::size_t>(eden_plane_bytes(static_cast<std::int64_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i) {
    unsigned index = 0;
    for (int bit = 0; bit + 1 < bits; ++bit)
      index |= (read_bit(in.subspan(kEdenHeaderBytes + (bit + 1) * plane_bytes), i) ? 1U : 0U) << bit;
    const float centroid = kEdenLevels[bits - 1].centroid[index];
    values[i] = read_bit(in.subspan(kEdenHeaderBytes), i) ? -centroid : centroid;
  }
  rotate_back(values, EdenTransforms(static_cast<std::int64_t>(values.size()), seed));
  for (float& value : values) value = eden_clamped(value * scale);
  return valid_scale(scale);
}

// Least error: the error is orthogonal to the estimate, so no longer than x. Unbiased: |estimate| = |x|^2 |Q| / <y, Q>,
// and <z, Q> >= c |z| with c the smallest centroid and |z| = sqrt(n), |Q| <= C sqrt(n) with C the largest one.
void error_bounds(const Spec& spec, std::span<const float> block, std::span<double> bounds) {
  double norm2 = 0;
  for (double x : block) norm2 += x * x;
  const EdenLevels& levels = kEdenLevels[eden_bits(spec) - 1];
  const double ratio = levels.centroid[(1 << (eden_bits(spec) - 1)) - 1] / levels.centroid[0];
  const double worst = 1 + ratio * std::sqrt(static_cast<double>(block.size()));
  const bool unbiased = spec.choice(kEdenScale) == kUnbiased;
  std::fill(bounds.begin(), bounds.end(), std::sqrt(norm2) * (unbiased ? worst : 1.0) * (1 + 1e-4) + 1e-43);
}

constexpr std::string_view kScales[] = {"unbiased", "least_error"};
constexpr OptionRule kOptions[] = {{.key = "bits", .default_value = 2, .least = 1, .most = 4},
                                   {.key = "scale", .choices = kScales},
                                   block_rule(kUnitElements)};
constexpr std::string_view kSamples[] = {"eden:bits=1", "eden:bits=1,scale=least_error,block=128",
                                         "eden:bits=3,block=2", "eden:bits=4"};

}  // namespace

const Format kEden = {.name = "eden",
                      .options = kOptions,
                      .scaled = true,
                      .randomised = true,
                      .block_bytes = eden_block_bytes,
                      .encode_block = encode_block,
                      .decode_block = decode_block,
                      .error_bounds = error_bounds,
                      .vector_kernels = vector_kernels,
                      .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
