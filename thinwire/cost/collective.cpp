#include "thinwire/cost/collective.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/message.hpp"

namespace thinwire::cost {
namespace {

void require(bool good, const std::string& where, const char* what, std::int64_t got, const std::string& want) {
  if (good) return;
  fail(ErrorCode::kInvalidArgument,
       {.place = "cost::" + where, .what = what, .got = std::to_string(got), .want = want, .hint = ""});
}

void require_sane(const char* where, int ranks, std::int64_t bytes) {
  require(ranks >= 1, where, "number of ranks", ranks, "at least 1");
  require(bytes >= 0, where, "number of bytes", bytes, "at least 0");
}

// `count` messages one after the other, `total` bytes together.
Cost messages(std::int64_t count, std::int64_t total_bytes, const Link& link) {
  const double moving_s = static_cast<double>(total_bytes) / link.bandwidth_bytes_per_s;
  return {static_cast<double>(count) * link.latency_s + moving_s, total_bytes};
}

std::int64_t rounded_up(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Lengths of the units of the segments, in order.
std::vector<std::int64_t> units_of(codec::Segments segments) {
  std::vector<std::int64_t> units;
  for (std::int64_t length : segments) {
    for (; length > codec::kUnitElements; length -= codec::kUnitElements) units.push_back(codec::kUnitElements);
    if (length > 0) units.push_back(length);
  }
  return units;
}

}  // namespace

Cost ring_all_reduce(int ranks, std::int64_t bytes, const Link& link, std::int64_t element_bytes) {
  require_sane("ring_all_reduce", ranks, bytes);
  require(element_bytes >= 1, "ring_all_reduce", "bytes of one element", element_bytes, "at least 1");
  const std::int64_t chunk_bytes = rounded_up(rounded_up(bytes, element_bytes), ranks) * element_bytes;
  const std::int64_t steps = 2 * (ranks - 1);
  return messages(steps, steps * chunk_bytes, link);
}

Cost all_gather(int ranks, std::int64_t own_bytes, const Link& link) {
  require_sane("all_gather", ranks, own_bytes);
  return messages(ranks - 1, (ranks - 1) * own_bytes, link);
}

Cost reduce_scatter(int ranks, std::int64_t bytes, const Link& link) {
  require_sane("reduce_scatter", ranks, bytes);
  require(bytes % ranks == 0, "reduce_scatter", "number of bytes", bytes, "a multiple of " + std::to_string(ranks));
  return messages(ranks - 1, (ranks - 1) * (bytes / ranks), link);
}

Cost all_to_all(int rank, const std::vector<std::int64_t>& split_bytes, const Link& link) {
  const auto ranks = static_cast<std::int64_t>(split_bytes.size());
  require(ranks >= 1, "all_to_all", "number of splits", ranks, "at least 1");
  require(rank >= 0 && rank < ranks, "all_to_all", "rank", rank, "0 ... " + std::to_string(ranks - 1));
  for (std::int64_t bytes : split_bytes) require(bytes >= 0, "all_to_all", "bytes of a split", bytes, "at least 0");
  const std::int64_t all = std::accumulate(split_bytes.begin(), split_bytes.end(), std::int64_t{0});
  return messages(ranks - 1, all - split_bytes[static_cast<std::size_t>(rank)], link);
}

Cost broadcast(int ranks, bool is_root, std::int64_t bytes, const Link& link) {
  require_sane("broadcast", ranks, bytes);
  if (ranks == 1) return {0, 0};
  return {messages(1, bytes, link).seconds, is_root ? bytes : 0};
}

Cost two_hop_all_reduce(int ranks, std::int64_t wire_chunk_bytes, const Link& link) {
  require_sane("two_hop_all_reduce", ranks, wire_chunk_bytes);
  const std::int64_t steps = 2 * (ranks - 1);
  return messages(steps, steps * wire_chunk_bytes, link);
}

std::vector<std::int64_t> chunk_wire_bytes(const codec::Codec& codec, codec::Segments segments, int ranks) {
  require_sane("chunk_wire_bytes", ranks, 0);
  codec.wire_bytes(segments);  // refuses negative lengths
  const std::vector<std::int64_t> units = units_of(segments);
  const auto share = static_cast<std::size_t>(rounded_up(static_cast<std::int64_t>(units.size()), ranks));
  std::vector<std::int64_t> bytes;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const std::size_t begin = std::min(rank * share, units.size());
    const std::size_t count = std::min(share, units.size() - begin);
    bytes.push_back(codec.wire_bytes(codec::Segments(units).subspan(begin, count)));
  }
  return bytes;
}

TwoHopCost two_hop_bucket(const codec::Codec& codec, codec::Segments segments, int ranks, int rank, const Link& link) {
  std::vector<std::int64_t> message_bytes = chunk_wire_bytes(codec, segments, ranks);
  for (std::int64_t& bytes : message_bytes) bytes += codec::kMessageHeaderBytes;
  const std::int64_t largest = *std::max_element(message_bytes.begin(), message_bytes.end());
  return {all_to_all(rank, message_bytes, link), all_gather(ranks, largest, link)};
}

}  // namespace thinwire::cost
