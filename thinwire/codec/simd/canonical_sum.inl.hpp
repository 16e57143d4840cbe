// canonical_sum.hpp, a vector at a time. Compiled once per instruction set, like tile.inl.hpp.
#if defined(THINWIRE_CODEC_SIMD_CANONICAL_SUM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_CODEC_SIMD_CANONICAL_SUM_INL_HPP
#undef THINWIRE_CODEC_SIMD_CANONICAL_SUM_INL_HPP
#else
#define THINWIRE_CODEC_SIMD_CANONICAL_SUM_INL_HPP
#endif

#include "thinwire/codec/formats/canonical_sum.hpp"
#include "thinwire/codec/simd/tile.inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;
using VF64 = hn::Vec<F64>;
constexpr std::int64_t kWideWidth = static_cast<std::int64_t>(hn::MaxLanes(F64()));

// kWideWidth floats as doubles.
HWY_INLINE VF64 widened(const float* from) {
  return hn::PromoteTo(F64(), hn::LoadU(HalfF32(), from));
}

// terms(i): those of kWideWidth elements from i on; term(i): of one.
template <class Terms, class Term>
HWY_INLINE double canonical_sum(std::int64_t count, Terms terms, Term term) {
  constexpr auto kLanes = static_cast<std::int64_t>(kSumLanes);
  constexpr std::int64_t kSums = kLanes / kWideWidth;
  VF64 sums[kSums];
  for (VF64& sum : sums) sum = hn::Zero(F64());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t part = 0; part < kSums; ++part) sums[part] = hn::Add(sums[part], terms(i + part * kWideWidth));
  HWY_ALIGN double lane[kSumLanes];
  for (std::int64_t part = 0; part < kSums; ++part) hn::Store(sums[part], F64(), lane + part * kWideWidth);
  for (std::int64_t l = 0; i + l < count; ++l) lane[l] += term(i + l);
  return fold_lanes(lane);
}

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // not HWY_SCALAR

#endif  // per-target guard
