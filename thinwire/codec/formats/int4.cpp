#include "thinwire/codec/formats/int4.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thinwire/codec/formats/int4.cpp"
#include "hwy/foreach_target.h"
#include "thinwire/codec/simd/packed_ints.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

const TileKernels& int4_kernels() {
  return THINWIRE_VECTOR_KERNELS(PackedLanes<4>::kKernels);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::codec {
namespace {

HWY_EXPORT(int4_kernels);
const TileKernels& vector_kernels() {
  return HWY_DYNAMIC_DISPATCH(int4_kernels)();
}

constexpr std::string_view kSamples[] = {"int4:block=64", "int4:block=1", "int4:block=32,rounding=stochastic"};

}  // namespace

const Format kInt4 = {.name = "int4",
                      .options = kPackedOptions,
                      .scaled = true,
                      .block_bytes = PackedInts<4>::block_bytes,
                      .encode_block = PackedInts<4>::encode_block,
                      .decode_block = PackedInts<4>::decode_block,
                      .error_bounds = PackedInts<4>::error_bounds,
                      .vector_kernels = vector_kernels,
                      .samples = kSamples};

}  // namespace thinwire::codec
#endif  // HWY_ONCE
