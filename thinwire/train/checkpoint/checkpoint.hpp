// Checkpoint and resume at the same world size: parameters, buffers, moments, frozen variance, residuals, bucket
// layout, step and torch's CPU generator. One file per rank, written to a temporary file, synced, renamed; a small file
// names the complete set last, so that a crash in between leaves the checkpoint before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "thinwire/train/ddp/data_parallel.hpp"

namespace torch::optim {
class Optimizer;
}

namespace thinwire::train {

// The caller's own progress, kept with the checkpoint.
struct TrainerState {
  std::int64_t step = 0;
  std::string extra = {};  // anything, for example the position in the data
};

// Every rank calls, between step() and the next backward. `directory` is made if missing; each save goes to a folder of
// its own in it ("step-0000000400"; ".again" behind it when the last save was of the same step), the last `keep` of
// which stay. One run at a time saves into a directory. Throws Error kIo (disk full, permission; nothing of the
// previous checkpoint is lost), kState (a step is open). Ends on every rank with the same verdict.
void save_checkpoint(const std::string& directory, DataParallel& parallel, const torch::optim::Optimizer& optimizer,
                     const TrainerState& state, int keep = 2);

// Every rank calls. Returns nothing when the directory has no file `latest`; to load an older one, write the
// name of its folder into the file `latest`. Afterwards the next step is bit for bit the one that would have followed
// the save. Learning rates and clipping are the caller's and may change. Throws, before anything is changed, Error
// kCorrupt (truncated, checksum, an empty `latest`) or kMismatch (other model, world size, optimizer, parameter groups,
// codecs, bucket sizes, or parts of different saves; names the first difference).
std::optional<TrainerState> load_checkpoint(const std::string& directory, DataParallel& parallel,
                                            torch::optim::Optimizer& optimizer);

}  // namespace thinwire::train
