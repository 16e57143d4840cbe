// First and second moments with a live variance, as AdamW and the warm-up stage of 1-bit Adam keep them.
#pragma once

#include <torch/serialize/archive.h>

#include <cstdint>
#include <string>
#include <vector>

#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/bucketed.hpp"

namespace thinwire::train {

class AdamMoments {
 public:
  explicit AdamMoments(const std::vector<Parameter>& parameters);

  // One step of parameter i with the mean gradient that the reducer has.
  void update(const Bucketed& bucketed, std::size_t i, const AdamWSettings& settings);

  at::Tensor& momentum(std::size_t i) { return momentum_[i]; }
  at::Tensor& variance(std::size_t i) { return variance_[i]; }
  std::int64_t steps(std::size_t i) const { return steps_[i]; }
  void count_step(std::size_t i) { ++steps_[i]; }
  Bucketed::NamedTensors named(const Bucketed& bucketed) const;

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive, const std::vector<Parameter>& parameters);

 private:
  std::vector<at::Tensor> momentum_;
  std::vector<at::Tensor> variance_;
  std::vector<std::int64_t> steps_;  // taken, by parameter
};

// For comparing one parameter group's settings between ranks.
std::vector<Fact> facts_of(const AdamWSettings& settings, std::size_t group);

// Throws Error kInvalidArgument naming the setting that is out of range.
void check_adam(const AdamWSettings& settings);

// Throws Error kMismatch when the archive was written by another optimizer.
void require_kind(torch::serialize::InputArchive& archive, const std::string& kind);

}  // namespace thinwire::train
