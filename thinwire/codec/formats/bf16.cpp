#include "thinwire/codec/formats/bf16.hpp"

#include "thinwire/codec/formats/halves.hpp"

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

using Blocks = Halves<to_bf16, from_bf16>;

void error_bounds(const Spec&, std::span<const float> block, std::span<double> bounds) {
  for (std::size_t i = 0; i < block.size(); ++i) bounds[i] = std::fabs(block[i]) * 0x1p-8 + 0x1p-134;
}

}  // namespace

const Format kBf16 = {.name = "bf16",
                      .block_bytes = Blocks::block_bytes,
                      .encode_block = Blocks::encode_block,
                      .decode_block = Blocks::decode_block,
                      .error_bounds = error_bounds,
                      .vector_kernels = vector_kernels};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
