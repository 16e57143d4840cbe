// Data-parallel training of a torch::nn::Module: gradients are averaged over the ranks while backward still runs.
//
//   auto world = thinwire::init_from_env();
//   thinwire::DataParallel parallel(*model, *world);
//   thinwire::OneBitAdam optimizer(parallel, {.lr = 1e-3});
//   loss_of(model->forward(x), y).backward();   // the exchange has ended when this returns
//   optimizer.step();
//   optimizer.zero_grad();
//
// Threads: everything here is called from one thread per rank, the one that runs forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/comm/world.hpp"
#include "thinwire/schema/step_report.hpp"
#include "thinwire/watch/timeline.hpp"

namespace torch::nn {
class Module;
}

namespace thinwire::train {

class Reducer;

enum class ClipMode {
  kExact,      // the norm is known before anything is encoded: no overlap in compressed stages
  kPredicted,  // the norm is predicted per bucket from the last step: keeps the overlap
};

struct DataParallelSettings {
  std::string codec = "fp32";  // how body gradients travel: fp32, bf16, int8, int4 under AdamW and optimizers that are
                               // not ours; under Sgd also one_bit
  std::int64_t bucket_bytes = 4 << 20;        // fp32 bytes; larger: fewer messages, less overlap; at most 25 MiB
  std::int64_t first_bucket_bytes = 1 << 20;  // smaller, so that the exchange starts early
  double max_grad_norm = 0;                   // clip the norm of the mean gradient; 0: off
  ClipMode clip_mode = ClipMode::kExact;      // kPredicted when exposed communication matters more than the exact norm
  bool broadcast_buffers = true;              // rank 0's buffers (batch-norm statistics) to all ranks, once a step
  std::int64_t parity_every = 0;              // compare a hash of all state across ranks every so many steps; 0: never
                                              // (with commit(): of the parameters, as the step before left them)
  std::vector<std::string> dense_parameters = {};      // names (or prefixes ending in '.') that always travel as fp32
  std::vector<std::string> embedding_parameters = {};  // names that travel as int8 rows, like Embedding weights
  // File for one JSON line per step. Each rank has its own: "{rank}" is replaced, and without it several ranks write
  // run.0.jsonl, run.1.jsonl, ... for "run.jsonl".
  std::string step_log = {};
};

class DataParallel {
 public:
  // Every rank calls. Checks that all ranks have the same parameters and settings, then copies rank 0's parameters and
  // buffers to all. Throws Error kMismatch naming the parameter, kInvalidArgument for a setting out of range.
  // `module` and `world` must outlive this object, and this object its optimizers. Several DataParallel may share a
  // world as long as the backward of one ends before that of another begins (kState); else each needs its own.
  DataParallel(torch::nn::Module& module, comm::World& world, DataParallelSettings settings = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  int rank() const;
  int size() const;
  torch::nn::Module& module() const;
  const DataParallelSettings& settings() const;

  // While one of these lives, backward only accumulates: nothing is sent. The first backward without it sends the sum.
  //   { auto accumulate = parallel.no_sync(); loss.backward(); }   loss.backward(); optimizer.step();
  class NoSync {
   public:
    explicit NoSync(Reducer& reducer);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync();

  // For optimizers that are not ours, between backward and their step: if (parallel.commit()) optimizer.step();
  // Makes the step's residuals the committed ones and clips what is not clipped yet. False: skip the step (or there is
  // none to take).
  bool commit();

  // Rank 0's buffers to all ranks now (before evaluation or a checkpoint).
  void sync_buffers();

  // Collectives for the caller's own numbers; they queue behind the exchange of the open step, so that every rank
  // issues them in the same order; a step that backward left open by an exception is given up first, on every rank. Not
  // inside backward, and not while another rank is in join(): that rank waits for a step. `values` is replaced by the
  // mean over the ranks; contiguous float32 or float64 of any shape. Throws Error kMismatch when ranks bring different
  // tensors, kInvalidArgument, both before anything is added up.
  void all_reduce_mean(at::Tensor values);
  void barrier();

  // A rank that has no more batches calls this: it takes part in the exchanges of the others with zero gradients until
  // every rank has called it. Returns the number of steps it shadowed. The step is taken by `step` on every rank.
  std::int64_t join(const std::function<void()>& step);

  // The last finished step, as reported. Also a line of `step_log`.
  const schema::StepReport& last_step() const;
  // Payload bytes that this rank has sent since the start.
  std::int64_t sent_bytes() const;
  watch::Timeline& timeline();

  Reducer& reducer();  // for optimizers and checkpoints

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::train
