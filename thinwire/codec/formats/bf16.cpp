#include "thinwire/codec/formats/bf16.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/bf16.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/halves.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

const TileKernels& bf16_kernels() {
  return THINWIRE_VECTOR_KERNELS(HalfTile<Bf16Lanes>::kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(bf16_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(bf16_kernels)();
}

std::int64_t block_bytes(const Spec&, std::int64_t elements) {
  return 2 * elements;
}

bool encode_block(const Spec&, const BlockInput& input, std::span<std::byte> out) {
  for (std::size_t i = 0; i < input.z.size(); ++i) store_little(out.data() + 2 * i, to_bf16(input.z[i]));
  return any_non_finite(input.z);
}

bool decode_block(const Spec&, std::span<const std::byte> in, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_bf16(load_little<std::uint16_t>(in.data() + 2 * i));
  return true;
}

double error_bound(const Spec&, std::span<const float>, float value) {
  return std::fabs(value) * 0x1p-8 + 0x1p-134;
}

}  // namespace

const Format kBf16 = {.name = "bf16",
                      .block_bytes = block_bytes,
                      .encode_block = encode_block,
                      .decode_block = decode_block,
                      .error_bound = error_bound,
                      .vector_kernels = vector_kernels};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
