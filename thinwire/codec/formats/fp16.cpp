#include "thinwire/codec/formats/fp16.hpp"

#include "thinwire/codec/formats/halves.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/fp16.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/halves.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

const TileKernels& fp16_kernels() {
  return THINWIRE_VECTOR_KERNELS(HalfTile<Fp16Lanes>::kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(fp16_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(fp16_kernels)();
}

using Blocks = Halves<to_fp16, from_fp16>;

void error_bounds(const Spec&, std::span<const float> block, std::span<double> bounds) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    const double size = std::fabs(block[i]);
    bounds[i] = size > kLargestFp16 ? size - kLargestFp16 : size * 0x1p-11 + 0x1p-25;
  }
}

}  // namespace

const Format kFp16 = {.name = "fp16",
                      .narrow = true,
                      .block_bytes = Blocks::block_bytes,
                      .encode_block = Blocks::encode_block,
                      .decode_block = Blocks::decode_block,
                      .error_bounds = error_bounds,
                      .vector_kernels = vector_kernels};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
