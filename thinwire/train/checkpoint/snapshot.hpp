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
  // Throws Error kCorrupt (no archive of ours), kMismatch (other model, optimizer, groups, world size or settings; the
  // first difference).
  Restore(const std::string& bytes, DataParallel& parallel, const torch::optim::Optimizer& optimizer);
  ~Restore();
  const std::string& set() const;
  // (collective) Puts everything in place. Refuses other settings of the same optimizer, before anything is changed and
  // on every rank alike, since those settings are the same on all.
  TrainerState apply(DataParallel& parallel, torch::optim::Optimizer& optimizer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
