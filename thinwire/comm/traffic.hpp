// What an operation moves, for counters and for the emulated link.
#pragma once

#include <cstdint>
#include <span>

namespace thinwire::comm {

// Payload of one operation as one rank sees it. Formulas: docs/algorithms.md, cost/collective.hpp.
struct Traffic {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  int messages = 0;  // that follow each other, each paying the link's latency
};

// The ring cuts `elements` into n chunks of ceil(elements / n) elements; reduce and gather each take n - 1 steps and
// move one chunk a step. The short last chunk counts as a full one, so that every rank counts the same.
Traffic all_reduce_traffic(int size, std::int64_t elements, std::int64_t element_bytes);
Traffic all_gather_traffic(int size, std::int64_t own_bytes);
Traffic reduce_scatter_traffic(int size, std::int64_t part_bytes);
Traffic all_to_all_traffic(int rank, std::span<const std::int64_t> out_bytes, std::span<const std::int64_t> in_bytes);
// Counted at the root only, once, whatever tree the backend uses.
Traffic broadcast_traffic(int size, bool is_root, std::int64_t bytes);

}  // namespace thinwire::comm
