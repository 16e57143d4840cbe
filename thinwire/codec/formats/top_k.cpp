#include "thinwire/codec/formats/top_k.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/top_k.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/tile.inl.hpp"

#ifndef THINWIRE_CODEC_TOP_K_ONCE
#define THINWIRE_CODEC_TOP_K_ONCE
namespace thinwire::codec {
namespace {

// Bits of a magnitude: integers that order as the magnitudes do.
std::uint32_t magnitude_of(float value) {
  return to_bits(value) & kMagnitude;
}

std::int64_t top_k_block_bytes(const Spec& spec, std::int64_t elements) {
  return top_k_count(spec, elements) * (top_k_index_bytes(spec) + static_cast<std::int64_t>(sizeof(float)));
}

// select=sampled: the threshold, from a sorted sample.
std::uint32_t sampled_threshold(const Spec& spec, std::span<const float> z) {
  const auto count = static_cast<std::int64_t>(z.size());
  const std::int64_t taken = std::min(count, kTopKSample);
  std::array<std::uint32_t, kTopKSample> sample{};
  for (std::int64_t i = 0; i < taken; ++i) sample[i] = magnitude_of(z[i * count / taken]);
  std::sort(sample.begin(), sample.begin() + taken, std::greater<>());
  return sample[top_k_count(spec, taken) - 1];
}

// Writes the block's entries one by one, in the order of their places.
class TopKWriter {
 public:
  TopKWriter(const Spec& spec, std::int64_t elements, std::byte* out)
      : index_bytes_(top_k_index_bytes(spec)),
        left_(top_k_count(spec, elements)),
        index_(out),
        value_(out + left_ * index_bytes_) {}

  std::int64_t left() const { return left_; }

  void put(std::int64_t place, float value) {
    if (index_bytes_ == 1) {
      *index_ = static_cast<std::byte>(place);
    } else {
      store_little(index_, static_cast<std::uint16_t>(place));
    }
    store_little(value_, to_bits(value + 0.0F));  // -0 becomes +0
    index_ += index_bytes_;
    value_ += sizeof(float);
    --left_;
  }

 private:
  std::int64_t index_bytes_;
  std::int64_t left_;
  std::byte* index_;
  std::byte* value_;
};

struct TopKEntry {
  std::int64_t place;
  float value;
};

TopKEntry top_k_entry(const Spec& spec, std::int64_t elements, const std::byte* in, std::int64_t i) {
  const std::int64_t width = top_k_index_bytes(spec);
  const std::byte* values = in + top_k_count(spec, elements) * width;
  return {width == 1 ? std::to_integer<std::int64_t>(in[i]) : load_little<std::uint16_t>(in + 2 * i),
          from_bits(load_little<std::uint32_t>(values + 4 * i))};
}

// Places ascend inside the block, values are finite: as an encoder writes them.
bool top_k_is_valid(const Spec& spec, std::int64_t elements, const std::byte* in) {
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < top_k_count(spec, elements); ++i) {
    const auto [place, value] = top_k_entry(spec, elements, in, i);
    if (place <= before || place >= elements || !std::isfinite(value)) return false;
    before = place;
  }
  return true;
}

// Of a block with a NaN or an infinity: zeros at the first places.
void write_zeros(const Spec& spec, std::int64_t elements, std::byte* out) {
  TopKWriter writer(spec, elements, out);
  for (std::int64_t place = 0; writer.left() > 0; ++place) writer.put(place, 0.0F);
}

}  // namespace
}  // namespace thinwire::codec
#endif  // once

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace {

// How many magnitudes are at least `threshold` > 0.
HWY_INLINE std::int64_t count_from(const float* HWY_RESTRICT z, std::int64_t count, std::uint32_t threshold) {
  const I32 d;
  const auto mask = hn::Set(d, static_cast<std::int32_t>(kMagnitude));
  const auto below = hn::Set(d, static_cast<std::int32_t>(threshold - 1));
  auto found = hn::Zero(d);  // minus the number, by lane
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const auto magnitude = hn::And(hn::BitCast(d, hn::LoadU(F32(), z + i)), mask);
    found = hn::Add(found, hn::VecFromMask(d, hn::Gt(magnitude, below)));
  }
  std::int64_t total = -static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(d, found)));
  for (; i < count; ++i) total += magnitude_of(z[i]) >= threshold ? 1 : 0;
  return total;
}

// The k-th largest magnitude, bit by bit from the highest: the largest threshold that k magnitudes reach.
HWY_INLINE std::uint32_t kth_largest(const float* z, std::int64_t count, std::int64_t k) {
  std::uint32_t threshold = 0;
  for (std::uint32_t bit = 1U << 30; bit > 0; bit >>= 1)
    if (count_from(z, count, threshold | bit) >= k) threshold |= bit;
  return threshold;
}

// Calls use(place) for every magnitude of at least `threshold`, in order.
template <class Use>
HWY_INLINE void each_from(const float* HWY_RESTRICT z, std::int64_t count, std::uint32_t threshold, Use use) {
  const I32 d;
  const auto mask = hn::Set(d, static_cast<std::int32_t>(kMagnitude));
  const auto below = hn::Set(d, static_cast<std::int32_t>(threshold) - 1);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const auto reached = hn::Gt(hn::And(hn::BitCast(d, hn::LoadU(F32(), z + i)), mask), below);
    if (hn::AllFalse(d, reached)) continue;
    for (std::int64_t j = i; j < i + kWidth; ++j)
      if (magnitude_of(z[j]) >= threshold) use(j);
  }
  for (; i < count; ++i)
    if (magnitude_of(z[i]) >= threshold) use(i);
}

HWY_INLINE void encode_exact(const Spec& spec, const float* z, std::int64_t count, std::byte* out) {
  TopKWriter writer(spec, count, out);
  const std::uint32_t threshold = kth_largest(z, count, writer.left());
  const std::int64_t above = threshold == kMagnitude ? 0 : count_from(z, count, threshold + 1);
  std::int64_t ties = writer.left() - above;
  each_from(z, count, threshold, [&](std::int64_t place) {
    if (magnitude_of(z[place]) == threshold && ties-- <= 0) return;
    writer.put(place, z[place]);
  });
}

HWY_INLINE void encode_sampled(const Spec& spec, const float* z, std::int64_t count, std::byte* out) {
  const std::uint32_t threshold = sampled_threshold(spec, {z, static_cast<std::size_t>(count)});
  TopKWriter writer(spec, count, out);
  const std::int64_t reached = threshold == 0 ? count : count_from(z, count, threshold);
  std::int64_t fill = writer.left() - std::min(reached, writer.left());
  if (fill == 0) {
    each_from(z, count, threshold, [&](std::int64_t place) {
      if (writer.left() > 0) writer.put(place, z[place]);
    });
    return;
  }
  for (std::int64_t place = 0; writer.left() > 0; ++place)
    if (magnitude_of(z[place]) >= threshold || fill-- > 0) writer.put(place, z[place]);
}

bool encode(const TileShape& shape, const float* z, KeepWords keep, std::byte* out, float* residual) {
  bool any = false;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    const bool non_finite = not_finite(largest_magnitude(z + at, count));
    any |= non_finite;
    if (non_finite) {
      write_zeros(shape.spec, count, out);
    } else if (shape.spec.choice(kTopKSelect) == 1) {
      encode_sampled(shape.spec, z + at, count, out);
    } else {
      encode_exact(shape.spec, z + at, count, out);
    }
    if (residual != nullptr) {
      std::copy_n(z + at, count, residual + at);
      for (std::int64_t i = 0; i < top_k_count(shape.spec, count); ++i) {
        const auto [place, value] = top_k_entry(shape.spec, count, out, i);
        residual[at + place] -= value;
      }
      if (keep != nullptr)
        for (std::int64_t i = at; i < at + count; ++i) residual[i] = from_bits(to_bits(residual[i]) & keep[i]);
    }
    out += top_k_block_bytes(shape.spec, count);
  }
  return any;
}

// Calls use(first element of the block, place, value) for every entry; false when a block is not one of ours.
template <class Use>
HWY_INLINE bool each_entry(const TileShape& shape, const std::byte* in, Use use) {
  bool valid = true;
  for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
    const std::int64_t count = block_length(shape, at);
    if (top_k_is_valid(shape.spec, count, in)) {
      for (std::int64_t i = 0; i < top_k_count(shape.spec, count); ++i) {
        const auto [place, value] = top_k_entry(shape.spec, count, in, i);
        use(at + place, value);
      }
    } else {
      valid = false;
    }
    in += top_k_block_bytes(shape.spec, count);
  }
  return valid;
}

bool decode(const TileShape& shape, const std::byte* in, float* values) {
  std::fill_n(values, shape.elements, 0.0F);
  return each_entry(shape, in, [values](std::int64_t i, float value) { values[i] = value; });
}

bool add(const TileShape& shape, const std::byte* in, float* sum) {
  return each_entry(shape, in, [sum](std::int64_t i, float value) { sum[i] += value; });
}

constexpr TileKernels kKernels = {encode, decode, add};

}  // namespace
#endif  // not HWY_SCALAR

const TileKernels& top_k_kernels() {
  return THINWIRE_VECTOR_KERNELS(kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(top_k_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(top_k_kernels)();
}

// Whether each element is sent.
std::vector<bool> exact_choice(const Spec& spec, std::span<const float> z) {
  std::vector<std::size_t> order(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::fabs(z[a]) > std::fabs(z[b]); });
  std::vector<bool> chosen(z.size());
  for (std::int64_t i = 0; i < top_k_count(spec, static_cast<std::int64_t>(z.size())); ++i) chosen[order[i]] = true;
  return chosen;
}

std::vector<bool> sampled_choice(const Spec& spec, std::span<const float> z) {
  const std::uint32_t threshold = sampled_threshold(spec, z);
  std::int64_t left = top_k_count(spec, static_cast<std::int64_t>(z.size()));
  std::vector<bool> chosen(z.size());
  for (std::size_t i = 0; i < z.size(); ++i)
    if (magnitude_of(z[i]) >= threshold && left > 0) chosen[i] = left-- > 0;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (!chosen[i] && left > 0) chosen[i] = left-- > 0;
  return chosen;
}

bool encode_block(const Spec& spec, const BlockInput& input, std::span<std::byte> out) {
  const std::span<const float> z = input.z;
  const auto count = static_cast<std::int64_t>(z.size());
  if (any_non_finite(z)) {
    write_zeros(spec, count, out.data());
    return true;
  }
  const std::vector<bool> chosen = spec.choice(kTopKSelect) == 1 ? sampled_choice(spec, z) : exact_choice(spec, z);
  TopKWriter writer(spec, count, out.data());
  for (std::int64_t i = 0; i < count; ++i)
    if (chosen[i]) writer.put(i, z[i]);
  return false;
}

bool decode_block(const Spec& spec, std::span<const std::byte> in, std::span<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::fill(values.begin(), values.end(), 0.0F);
  if (!top_k_is_valid(spec, count, in.data())) return false;
  for (std::int64_t i = 0; i < top_k_count(spec, count); ++i) {
    const auto [place, value] = top_k_entry(spec, count, in.data(), i);
    values[place] = value;
  }
  return true;
}

void error_bounds(const Spec&, std::span<const float> block, std::span<double> bounds) {
  for (std::size_t i = 0; i < block.size(); ++i) bounds[i] = std::fabs(block[i]);
}

constexpr std::string_view kSelections[] = {"exact", "sampled"};
constexpr OptionRule kOptions[] = {
    {.key = "density", .default_value = 0.01, .least = 1.0 / kUnitElements, .most = 1, .whole = false},
    {.key = "select", .choices = kSelections},
    block_rule(kUnitElements)};
constexpr std::string_view kSamples[] = {"top_k:density=0.3,block=128", "top_k:density=1,block=4",
                                         "top_k:density=0.1,select=sampled"};

}  // namespace

const Format kTopK = {.name = "top_k",
                      .options = kOptions,
                      .block_bytes = top_k_block_bytes,
                      .encode_block = encode_block,
                      .decode_block = decode_block,
                      .error_bounds = error_bounds,
                      .vector_kernels = vector_kernels,
                      .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
