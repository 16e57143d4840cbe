// Where the ranks of a local group meet: operations are matched by their order, carried out by whoever arrives last.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

enum class LocalOp { kAllToAll, kAllGather, kAllReduce, kReduceScatter, kBroadcast, kPointToPoint, kBarrier };

// What one rank brings to an operation.
struct LocalRequest {
  LocalOp op = LocalOp::kBarrier;
  OpTag tag = {};
  std::string shape = {};  // what must be equal on all ranks, in words
  at::Tensor out = {};     // also the tensor of an operation in place
  at::Tensor in = {};
  std::vector<std::int64_t> out_splits = {};
  std::vector<std::int64_t> in_splits = {};
  ReduceOp reduce = ReduceOp::kSum;
  int root = 0;  // of a broadcast; the sender of a message
};

// One operation: complete when each participant's request is there. Guarded by the hub's mutex.
struct LocalMeeting {
  std::vector<int> participants;
  std::vector<std::optional<LocalRequest>> requests;  // by rank
  bool done = false;

  std::vector<int> missing() const;
};

class LocalHub {
 public:
  LocalHub(int size, std::int64_t timeout_ms);

  int size() const { return size_; }

  // Returns without waiting. Throws the Error of the group when it is dead.
  std::shared_ptr<LocalMeeting> join(int rank, LocalRequest request);
  std::shared_ptr<LocalMeeting> join_message(int rank, int from, int to, LocalRequest request);

  // Until `meeting` is done, the group is dead, or the timeout has passed, which kills the group. Throws accordingly.
  void wait(LocalMeeting& meeting, const OpTag& tag);

  // The first call decides what every later Error says.
  void kill(ErrorCode code, const std::string& message);

  // `rank` brings no more requests: who needs one from it fails now, as when a process closes its connections.
  void leave(int rank);

 private:
  struct Key {
    int from;  // -1: all ranks
    int to;
    std::int64_t sequence;
    auto operator<=>(const Key&) const = default;
  };

  std::shared_ptr<LocalMeeting> meet(int rank, const Key& key, const std::vector<int>& participants,
                                     LocalRequest request);
  void check_departed(const LocalMeeting& meeting);
  void kill_locked(ErrorCode code, const std::string& message);
  void throw_if_dead() const;

  const int size_;
  const std::int64_t timeout_ms_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<LocalMeeting>> open_;
  std::map<Key, std::int64_t> next_;  // by (from, to, rank)
  std::vector<bool> departed_;
  std::optional<Error> dead_;
};

// Carries out a complete operation. Reduces in rank order, so that every rank gets the same bits.
void run_local_operation(LocalMeeting& meeting);

}  // namespace thinwire::comm
