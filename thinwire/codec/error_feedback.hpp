// What compression has not sent yet. Owns two copies of a residual: the committed one and the one being written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace thinwire::codec {

// Not thread safe. An exchange reads `committed` and writes `pending`; `commit` makes the pending copy the committed
// one in O(1); without a commit the pending copy is simply written again by the next exchange.
class ErrorFeedback {
 public:
  explicit ErrorFeedback(std::int64_t elements);

  std::int64_t size() const { return static_cast<std::int64_t>(copies_[0].size()); }
  std::span<const float> committed() const { return copies_[current_]; }
  std::span<float> pending() { return copies_[1 - current_]; }
  void commit() { current_ = 1 - current_; }

  // Copies a committed range into the pending copy: that range then survives the next commit unchanged.
  void keep(std::int64_t begin, std::int64_t count);

  // Multiplies the committed residual (change of units: gradient to momentum, learning rate of plain SGD).
  void rescale(float factor);

  // Replaces the committed residual (resume, re-cut). REQUIRES: values.size() == size().
  void restore(std::span<const float> values);

 private:
  std::vector<float> copies_[2];
  int current_ = 0;
};

}  // namespace thinwire::codec
