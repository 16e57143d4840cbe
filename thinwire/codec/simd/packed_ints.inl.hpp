// Vector kernels of int8, int4 and int2. Compiled once per instruction set, like tile.inl.hpp.
#if defined(THINWIRE_CODEC_SIMD_PACKED_INTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_CODEC_SIMD_PACKED_INTS_INL_HPP
#undef THINWIRE_CODEC_SIMD_PACKED_INTS_INL_HPP
#else
#define THINWIRE_CODEC_SIMD_PACKED_INTS_INL_HPP
#endif

#include "thinwire/codec/formats/packed_ints.hpp"
#include "thinwire/codec/simd/tile.inl.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace thinwire::codec::HWY_NAMESPACE {

// hash32 of every lane.
HWY_INLINE VU32 hash_lanes(VU32 x) {
  const U32 d;
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352DU));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68BU));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

template <int kBits>
struct PackedLanes {
  using Ints = PackedInts<kBits>;
  using Quantiser = typename Ints::Quantiser;

  HWY_INLINE static std::int64_t code_bytes(std::int64_t count) { return Ints::run_of(count); }

  // The quantiser's numbers in every lane.
  struct Lanes {
    VF32 absmax, pre, gain;
    std::uint32_t key;

    HWY_INLINE explicit Lanes(const Quantiser& q)
        : absmax(hn::Set(F32(), q.absmax)), pre(hn::Set(F32(), q.pre)), gain(hn::Set(F32(), q.gain)), key(q.key) {}

    // q + kRound, for the elements from i on.
    template <bool kStochastic>
    HWY_INLINE VF32 shifted(VF32 z, std::int64_t i) const {
      const F32 d;
      VF32 v = hn::Mul(hn::Mul(z, pre), gain);
      if constexpr (kStochastic) {
        const VU32 drawn = hn::ShiftRight<16>(hash_lanes(hn::Iota(U32(), key + static_cast<std::uint32_t>(i))));
        const VF32 wide = hn::ConvertTo(d, hn::BitCast(I32(), drawn));
        v = hn::Add(v, hn::Sub(hn::Mul(hn::Add(wide, hn::Set(d, 0.5F)), hn::Set(d, 0x1p-16F)), hn::Set(d, 0.5F)));
      }
      return hn::Add(v, hn::Set(d, Ints::kRound));
    }
    HWY_INLINE VF32 decoded(VF32 shifted) const {
      const F32 d;
      return hn::Mul(absmax, hn::Mul(hn::Sub(shifted, hn::Set(d, Ints::kRound)), hn::Set(d, Ints::kStep)));
    }
  };

  template <bool kStochastic, bool kWithResidual>
  HWY_INLINE static void encode(const float* HWY_RESTRICT z, std::int64_t count, const Quantiser& quantiser,
                                std::uint8_t* HWY_RESTRICT codes, float* HWY_RESTRICT residual) {
    const Lanes lanes(quantiser);
    const std::int64_t run = Ints::run_of(count);
    const std::int64_t full = count - (Ints::kParts - 1) * run;  // places whose every part holds an element
    std::int64_t j = 0;
    for (; j + kWidth <= full; j += kWidth) {
      VU32 bytes = hn::Zero(U32());
      for (int part = 0; part < Ints::kParts; ++part) {
        const std::int64_t i = part * run + j;
        const VF32 value = hn::LoadU(F32(), z + i);
        const VF32 shifted = lanes.template shifted<kStochastic>(value, i);
        const VU32 code = hn::Sub(hn::BitCast(U32(), shifted),
                                  hn::Set(U32(), Ints::kRoundBits - static_cast<unsigned>(Ints::kOffset)));
        bytes = hn::Or(bytes, hn::ShiftLeftSame(code, part * kBits));
        if constexpr (kWithResidual) hn::StoreU(hn::Sub(value, lanes.decoded(shifted)), F32(), residual + i);
      }
      hn::StoreU(hn::TruncateTo(U8(), bytes), U8(), codes + j);
    }
    for (; j < run; ++j) {
      int byte = 0;
      for (int part = 0; part < Ints::kParts; ++part) {
        const std::int64_t i = part * run + j;
        int q = 0;
        if (i < count) {
          q = quantiser.quantised(z[i], i, kStochastic);
          if constexpr (kWithResidual) residual[i] = z[i] - quantiser.decoded(q);
        }
        byte |= ((q + Ints::kOffset) & Ints::kCodeMask) << (part * kBits);
      }
      codes[j] = static_cast<std::uint8_t>(byte);
    }
  }

  template <class Sink>
  HWY_INLINE static void decode(const std::byte* in, std::int64_t count, float absmax, Sink sink) {
    const std::uint8_t* HWY_RESTRICT codes = as_u8(in);
    const std::int64_t run = Ints::run_of(count);
    const VF32 scale = hn::Set(F32(), absmax);
    const VF32 step = hn::Set(F32(), Ints::kStep);
    for (int part = 0; part < Ints::kParts; ++part) {
      const std::int64_t first = part * run;
      const std::int64_t here = std::min(run, count - first);
      std::int64_t j = 0;
      for (; j + kWidth <= here; j += kWidth) {
        const auto q = [&] {
          if constexpr (Ints::kParts == 1) {
            return hn::PromoteTo(I32(), hn::BitCast(hn::Rebind<std::int8_t, F32>(), hn::LoadU(U8(), codes + j)));
          } else {
            const VU32 bytes = hn::PromoteTo(U32(), hn::LoadU(U8(), codes + j));
            const VU32 code = hn::And(hn::ShiftRightSame(bytes, part * kBits),
                                      hn::Set(U32(), static_cast<std::uint32_t>(Ints::kCodeMask)));
            return hn::Sub(hn::BitCast(I32(), code), hn::Set(I32(), Ints::kOffset));
          }
        }();
        sink.vector(first + j, hn::Mul(scale, hn::Mul(hn::ConvertTo(F32(), q), step)));
      }
      for (; j < here; ++j) {
        const std::span<const std::byte> all(in, static_cast<std::size_t>(run));
        sink.one(first + j, absmax * (static_cast<float>(Ints::code_at(all, first + j, run)) * Ints::kStep));
      }
    }
  }

  template <bool kStochastic>
  HWY_INLINE static bool encode_blocks(const TileShape& shape, const float* z, std::byte* out, float* residual) {
    bool non_finite = false;
    for (std::int64_t at = 0; at < shape.elements; at += shape.spec.block) {
      const std::int64_t count = block_length(shape, at);
      const std::size_t bytes = static_cast<std::size_t>(kScaleBytes + code_bytes(count));
      const std::uint32_t top = largest_magnitude(z + at, count);
      if (not_finite(top)) {
        non_finite = true;
        write_meaningless({out, bytes}, Ints::kZeroByte);
        if (residual != nullptr) std::copy_n(z + at, count, residual + at);
      } else {
        store_little(out, top);
        const Quantiser quantiser(from_bits(top), shape.seed);
        if (residual == nullptr) {
          encode<kStochastic, false>(z + at, count, quantiser, as_u8(out + kScaleBytes), nullptr);
        } else {
          encode<kStochastic, true>(z + at, count, quantiser, as_u8(out + kScaleBytes), residual + at);
        }
      }
      out += bytes;
    }
    return non_finite;
  }

  static bool encode_tile(const TileShape& shape, const float* z, KeepWords, std::byte* out, float* residual) {
    return shape.spec.choice(kRoundingOption) == 1 ? encode_blocks<true>(shape, z, out, residual)
                                                   : encode_blocks<false>(shape, z, out, residual);
  }

  static constexpr TileKernels kKernels = {encode_tile, decode_scaled_tile<PackedLanes>, add_scaled_tile<PackedLanes>};
};

}  // namespace thinwire::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // not HWY_SCALAR

#endif  // per-target guard
