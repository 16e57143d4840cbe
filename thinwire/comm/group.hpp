// Ranks that communicate. The one seam of the training half with about a dozen virtuals; each implementation is a file:
// c10d_group (Gloo, NCCL), local_group (ranks as threads of one process), emulated_link (a slower copy of any group).
//
// Threads: one thread at a time may start operations on a group; a Handle may be waited for on another thread.
// Order: every rank starts the same operations in the same order. Nothing in here checks that; the reducer's layout
// hash does (train/ddp/layout.hpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "thinwire/comm/counters.hpp"

namespace thinwire::comm {

enum class ReduceOp { kSum, kMax };

// Names an operation in error messages and counters.
struct OpTag {
  const char* what = "";   // "dense", "hop 1", "hop 2", "barrier", "broadcast of parameters": a string literal
  std::int64_t step = -1;  // optimizer step, -1: none
  int bucket = -1;         // -1: none
};

// One operation in flight. Owns the tensors it works on until it ends.
class Work {
 public:
  virtual ~Work() = default;

  // Blocks until the result is there. Throws Error: kPeerFailure (names the rank and what it was doing),
  // kTimeout when nobody can be blamed, kMismatch. After an error the group is dead: every later call throws.
  // A group's timeout bounds the wait; there is no shorter one, since Gloo closes its connections on an expired wait.
  virtual void wait() = 0;
};
using Handle = std::unique_ptr<Work>;

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends in[sum of splits before r ...] to rank r. uint8 tensors, contiguous; splits in elements, one per rank.
  virtual Handle all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> out_splits,
                            std::vector<std::int64_t> in_splits, const OpTag& tag) = 0;
  // out has size() times the elements of in, in rank order. Any dtype, contiguous.
  virtual Handle all_gather(at::Tensor out, at::Tensor in, const OpTag& tag) = 0;
  // In place, the same bits on every rank. float32, float64, int64 or uint8 (kMax), contiguous.
  virtual Handle all_reduce(at::Tensor tensor, ReduceOp op, const OpTag& tag) = 0;
  // out has 1/size() of the elements of in; rank r receives part r.
  virtual Handle reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, const OpTag& tag) = 0;
  virtual Handle broadcast(at::Tensor tensor, int root, const OpTag& tag) = 0;
  virtual Handle send(at::Tensor tensor, int to, const OpTag& tag) = 0;
  virtual Handle recv(at::Tensor tensor, int from, const OpTag& tag) = 0;
  virtual Handle barrier(const OpTag& tag) = 0;

  // Makes every wait on this group, here and on the other ranks, end now with an error, and every later call fail at
  // once. Never throws; idempotent. (A backend that was handed over cannot end waits: c10d_group.hpp.)
  virtual void shutdown() noexcept = 0;

  // Bytes this rank has handed to the network so far, payload only (thread safe).
  virtual const Counters& counters() const = 0;

  // "gloo", "local", "gloo + emulated 100 Mbit/s".
  virtual std::string description() const = 0;
};

}  // namespace thinwire::comm
