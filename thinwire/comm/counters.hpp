// Payload bytes that a group has sent, by kind of operation. Written by the group, read by anyone.
#pragma once

#include <atomic>
#include <cstdint>

namespace thinwire::comm {

// What one rank sends, n ranks, S bytes of its own tensor (docs/algorithms.md, the same formulas in
// cost/collective.hpp):
//   all_to_all      sum of the splits for other ranks
//   all_gather      (n-1) * S            all_reduce      ring: 2(n-1) chunks as the ring cuts them
//   reduce_scatter  (n-1) * S/n          broadcast       S at the root only     send  S     barrier  0
struct Counters {
  std::atomic<std::int64_t> all_to_all{0};
  std::atomic<std::int64_t> all_gather{0};
  std::atomic<std::int64_t> all_reduce{0};
  std::atomic<std::int64_t> reduce_scatter{0};
  std::atomic<std::int64_t> broadcast{0};
  std::atomic<std::int64_t> send{0};

  std::int64_t total() const {
    return all_to_all.load() + all_gather.load() + all_reduce.load() + reduce_scatter.load() + broadcast.load() +
           send.load();
  }
};

}  // namespace thinwire::comm
