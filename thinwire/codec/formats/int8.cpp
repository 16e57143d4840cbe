#include "thinwire/codec/formats/int8.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/int8.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/packed_ints.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

const TileKernels& int8_kernels() {
  return THINWIRE_VECTOR_KERNELS(PackedLanes<8>::kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(int8_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(int8_kernels)();
}

constexpr std::string_view kSamples[] = {"int8:block=2048", "int8:block=1", "int8:rounding=stochastic"};

}  // namespace

const Format kInt8 = {.name = "int8",
                      .options = kPackedOptions,
                      .scaled = true,
                      .block_bytes = PackedInts<8>::block_bytes,
                      .encode_block = PackedInts<8>::encode_block,
                      .decode_block = PackedInts<8>::decode_block,
                      .error_bounds = PackedInts<8>::error_bounds,
                      .vector_kernels = vector_kernels,
                      .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
