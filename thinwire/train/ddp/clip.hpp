// The factor that clips the norm of the mean gradient: min(1, max_norm / norm). No communication in here.
#pragma once

#include <cstdint>
#include <vector>

namespace thinwire::train {

inline float clip_factor(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? static_cast<float>(max_norm / norm) : 1.0F;
}

// Predicts the norm of the mean gradient while the gradient is still arriving, from the part that a rank has of one
// bucket: norm = smoothed norm * |bucket now| / smoothed |bucket|. A spike shows in the bucket, so it is clipped in its
// own step. Not thread safe; each rank predicts for itself.
class NormPredictor {
 public:
  explicit NormPredictor(std::size_t buckets = 0) : bucket_norms_(buckets, 0.0) {}

  // False until one norm and one norm of every bucket are known: then the exact norm is needed.
  bool ready() const { return norm_ > 0; }
  // REQUIRES: ready().
  double predict(std::size_t bucket, double bucket_norm) const;
  // After the step, with the norm of the mean gradient and this rank's norm of every bucket. Not called for skipped
  // steps, nor where this rank had no batch. A norm of 0 (nothing in the bucket was used) teaches nothing.
  void observe(double norm, const std::vector<double>& bucket_norms);

  double norm() const { return norm_; }
  const std::vector<double>& bucket_norms() const { return bucket_norms_; }
  void restore(double norm, std::vector<double> bucket_norms);

 private:
  double norm_ = 0;
  std::vector<double> bucket_norms_;
};

}  // namespace thinwire::train
