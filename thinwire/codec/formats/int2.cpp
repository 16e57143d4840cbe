#include "thinwire/codec/formats/int2.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/int2.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/packed_ints.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

const TileKernels& int2_kernels() {
  return THINWIRE_VECTOR_KERNELS(PackedLanes<2>::kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(int2_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(int2_kernels)();
}

constexpr std::string_view kSamples[] = {"int2:block=32", "int2:block=2", "int2:rounding=stochastic"};

}  // namespace

const Format kInt2 = {.name = "int2",
                      .options = kPackedOptions,
                      .scaled = true,
                      .block_bytes = PackedInts<2>::block_bytes,
                      .encode_block = PackedInts<2>::encode_block,
                      .decode_block = PackedInts<2>::decode_block,
                      .error_bounds = PackedInts<2>::error_bounds,
                      .vector_kernels = vector_kernels,
                      .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
