// One rank's whole training state as bytes, and back.
#pragma once

#include <memory>
#include <string>

#include "thinwire/train/checkpoint/checkpoint.hpp"

namespace thinwire::train {

// A torch archive: parameters, buffers, optimizer, residuals, layout, counters, generator, and facts that must match.
// `set` names the save that the parts of all ranks belong to.
std::string snapshot(DataParallel& parallel, const torch::optim::Optimizer& optimizer, const TrainerState& state,
                     const std::string& set);

// A snapshot that has been read and compared, and not yet applied.
class Restore {
 public:
  // Throws Error kCorrupt (no archive of ours), kMismatch (other model, world size or settings; the first difference).
  Restore(const std::string& bytes, DataParallel& parallel);
  ~Restore();
  const std::string& set() const;
  // (collective) Puts everything in place.
  TrainerState apply(DataParallel& parallel, torch::optim::Optimizer& optimizer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
