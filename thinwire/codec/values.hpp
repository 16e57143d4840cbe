// Spans of the floats that a codec encodes: fp32, bf16 or fp16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::codec {

// Bit patterns: upper half of a binary32; IEEE binary16. The same memory as c10::BFloat16 and c10::Half.
struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

enum class Dtype { kFp32, kBf16, kFp16 };

// A borrowed span of one of the three.
class Values {
 public:
  Values(std::span<const float> values) : data_(values.data()), size_(values.size()) {}  // NOLINT: implicit
  Values(std::span<float> values) : Values(std::span<const float>(values)) {}            // NOLINT: implicit
  Values(std::span<const Bf16> values)                                                   // NOLINT: implicit
      : data_(values.data()), size_(values.size()), dtype_(Dtype::kBf16) {}
  Values(std::span<const Fp16> values)  // NOLINT: implicit
      : data_(values.data()), size_(values.size()), dtype_(Dtype::kFp16) {}
  template <class Container>
  requires requires(const Container& c) { std::span(c.data(), c.size()); }
  Values(const Container& values) : Values(std::span(values.data(), values.size())) {}  // NOLINT: implicit

  Dtype dtype() const { return dtype_; }
  std::size_t size() const { return size_; }
  // REQUIRES: dtype() is the one of the name.
  const float* fp32() const { return static_cast<const float*>(data_); }
  const Bf16* bf16() const { return static_cast<const Bf16*>(data_); }
  const Fp16* fp16() const { return static_cast<const Fp16*>(data_); }

 private:
  const void* data_;
  std::size_t size_;
  Dtype dtype_ = Dtype::kFp32;
};

}  // namespace thinwire::codec
