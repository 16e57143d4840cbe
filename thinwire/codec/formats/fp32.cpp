#include "thinwire/codec/formats/fp32.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/fp32.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/tile.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace {

bool encode(const TileShape& shape, const float* HWY_RESTRICT z, KeepWords, std::byte* HWY_RESTRICT out,
            float* HWY_RESTRICT residual) {
  std::memcpy(out, z, static_cast<std::size_t>(shape.elements) * sizeof(float));
  const bool non_finite = not_finite(largest_magnitude(z, shape.elements));
  if (residual != nullptr)  // not 0 where z is not finite
    for (std::int64_t i = 0; i < shape.elements; ++i) residual[i] = z[i] - z[i];
  return non_finite;
}

bool decode(const TileShape& shape, const std::byte* in, float* values) {
  std::memcpy(values, in, static_cast<std::size_t>(shape.elements) * sizeof(float));
  return true;
}

bool add(const TileShape& shape, const std::byte* HWY_RESTRICT in, float* HWY_RESTRICT sum) {
  std::int64_t i = 0;
  for (; i + kWidth <= shape.elements; i += kWidth) {
    HWY_ALIGN float values[kWidth];
    std::memcpy(values, in + 4 * i, sizeof(values));
    AddSink{sum}.vector(i, hn::Load(F32(), values));
  }
  for (; i < shape.elements; ++i) sum[i] += from_bits(load_little<std::uint32_t>(in + 4 * i));
  return true;
}

constexpr TileKernels kKernels = {encode, decode, add};

}  // namespace
#endif  // not HWY_SCALAR

const TileKernels& fp32_kernels() {
  return THINWIRE_VECTOR_KERNELS(kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace thinwire::codec {
namespace {

HWY_EXPORT(fp32_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(fp32_kernels)();
}

std::int64_t block_bytes(const Spec&, std::int64_t elements) {
  return 4 * elements;
}

bool encode_block(const Spec&, const BlockInput& input, std::span<std::byte> out) {
  for (std::size_t i = 0; i < input.z.size(); ++i) store_little(out.data() + 4 * i, to_bits(input.z[i]));
  return any_non_finite(input.z);
}

bool decode_block(const Spec&, std::span<const std::byte> in, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_bits(load_little<std::uint32_t>(in.data() + 4 * i));
  return true;
}

void error_bounds(const Spec&, std::span<const float>, std::span<double> bounds) {
  std::fill(bounds.begin(), bounds.end(), 0.0);
}

}  // namespace

const Format kFp32 = {.name = "fp32",
                      .lossless = true,
                      .block_bytes = block_bytes,
                      .encode_block = encode_block,
                      .decode_block = decode_block,
                      .error_bounds = error_bounds,
                      .vector_kernels = vector_kernels};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
