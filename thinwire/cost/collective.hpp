// Time and bytes of collectives on a link that moves one message in alpha + bytes / beta.
// The bytes are those that comm/counters.hpp counts.
#pragma once

#include <cstdint>
#include <vector>

#include "thinwire/codec/codec.hpp"

namespace thinwire::cost {

struct Link {
  double latency_s = 50e-6;               // per message; raise it for TCP across racks
  double bandwidth_bytes_per_s = 12.5e9;  // one direction, per rank
};

struct Cost {
  double seconds;
  std::int64_t sent_bytes;  // by one rank
};

// All functions: REQUIRES ranks >= 1, bytes >= 0 (else Error kInvalidArgument). One rank costs nothing.

// Ring all-reduce: n - 1 reduce steps and n - 1 gather steps, each moving one of n chunks. A chunk is a whole number of
// elements; a short last one counts as full, so that every rank counts the same.
//   steps 2(n-1)    bytes 2(n-1) * ceil(S/n)    error none (sums in rank order of the ring)
// Source: Patarasuk and Yuan, JPDC 69(2), 2009, section 4.
Cost ring_all_reduce(int ranks, std::int64_t bytes, const Link& link, std::int64_t element_bytes = 1);

//   steps n-1    bytes (n-1) * S, S of one rank's own tensor
Cost all_gather(int ranks, std::int64_t own_bytes, const Link& link);

//   steps n-1    bytes (n-1) * S/n. REQUIRES: n divides S.
Cost reduce_scatter(int ranks, std::int64_t bytes, const Link& link);

//   steps n-1    bytes the sum of the splits for other ranks. `split_bytes` has one entry per rank.
Cost all_to_all(int rank, const std::vector<std::int64_t>& split_bytes, const Link& link);

//   steps 1      bytes S at the root, else 0, whatever tree the backend uses
Cost broadcast(int ranks, bool is_root, std::int64_t bytes, const Link& link);

// Two-hop compressed all-reduce: all-to-all of encoded chunks, then all-gather of the re-encoded sums.
//   steps 2(n-1)    bytes 2(n-1) * chunk for equal chunks    error bounded by the codec, carried by its residuals
// `wire_chunk_bytes` is what one message carries: header and encoded chunk.
Cost two_hop_all_reduce(int ranks, std::int64_t wire_chunk_bytes, const Link& link);

// The same for a real bucket, as rank `rank` sees it. Units of 2048 elements, cut inside each segment, are dealt in
// order, ceil(units / n) per owner, so that the last chunks may be short or empty; h is codec::kMessageHeaderBytes.
//   hop 1    steps n-1    bytes sum over r != rank of (h + wire(chunk_r))
//   hop 2    steps n-1    bytes (n-1) * (h + wire(largest chunk)): shorter ones are padded, and padding is sent
// REQUIRES: 0 <= rank < ranks.
struct TwoHopCost {
  Cost hop1;
  Cost hop2;
};
TwoHopCost two_hop_bucket(const codec::Codec& codec, codec::Segments segments, int ranks, int rank, const Link& link);

// wire(chunk_r) of every owner r.
std::vector<std::int64_t> chunk_wire_bytes(const codec::Codec& codec, codec::Segments segments, int ranks);

}  // namespace thinwire::cost
