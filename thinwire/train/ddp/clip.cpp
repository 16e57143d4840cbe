#include "thinwire/train/ddp/clip.hpp"

#include <utility>

namespace thinwire::train {
namespace {

// Share of the old value in the smoothed one: short, since norms drift fast early in training.
constexpr double kKeep = 0.7;

double smoothed(double before, double now) {
  return before > 0 ? kKeep * before + (1 - kKeep) * now : now;
}

}  // namespace

double NormPredictor::predict(std::size_t bucket, double bucket_norm) const {
  const double before = bucket_norms_[bucket];
  return before > 0 ? norm_ * bucket_norm / before : norm_;
}

void NormPredictor::observe(double norm, const std::vector<double>& bucket_norms) {
  if (!(norm > 0)) return;
  norm_ = smoothed(norm_, norm);
  for (std::size_t i = 0; i < bucket_norms_.size(); ++i) {
    if (bucket_norms[i] > 0) bucket_norms_[i] = smoothed(bucket_norms_[i], bucket_norms[i]);
  }
}

void NormPredictor::restore(double norm, std::vector<double> bucket_norms) {
  norm_ = norm;
  bucket_norms_ = std::move(bucket_norms);
}

}  // namespace thinwire::train
