// The norm of the mean gradient without the mean gradient: a signed hash sketch (Alon, Matias and Szegedy, JCSS 58(1),
// 1999; Charikar, Chen and Farach-Colton, TCS 312(1), 2004). Linear: the sketch of a sum is the sum of sketches, so
// ranks add theirs up with one all-reduce of 16 KiB.
//
// Element i of parameter p goes to lane i % kLanes with a sign that depends on (p, i) only. |sketch| estimates
// |gradient| without bias in the square and with a relative standard deviation of sqrt(2 / kLanes) / 2 = 1.1 %.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace thinwire::train {

// Not thread safe.
class NormSketch {
 public:
  static constexpr std::int64_t kLanes = 4096;

  void clear() { lanes_.fill(0.0F); }
  // Adds elements [offset, offset + values.size()) of a parameter. REQUIRES: offset is a multiple of 64.
  void add(int parameter, std::int64_t offset, std::span<const float> values);
  double norm() const;

  std::span<float> lanes() { return lanes_; }
  std::span<const float> lanes() const { return lanes_; }

 private:
  std::array<float, kLanes> lanes_{};
};

}  // namespace thinwire::train
