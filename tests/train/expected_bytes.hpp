// What one training step must send, by the formulas of cost/collective.hpp, and shapes that make it uneven.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "tests/train/vectors.hpp"
#include "thinwire/codec/codec.hpp"
#include "thinwire/comm/world.hpp"
#include "thinwire/cost/collective.hpp"
#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/ddp/reducer.hpp"

namespace thinwire::train {

// Body of 4 and of 1.2 units and one whose owners get uneven chunks, norms and biases.
inline const std::vector<Shape> kUnevenShapes{{90, 91}, {300}, {50, 50}, {7}, {130, 100}, {1000}};

struct Bytes {
  std::int64_t all_reduce = 0, all_to_all = 0, all_gather = 0, other = 0;
  std::int64_t total() const { return all_reduce + all_to_all + all_gather + other; }
  bool operator==(const Bytes&) const = default;
};

inline void PrintTo(const Bytes& bytes, std::ostream* out) {
  *out << "all_reduce " << bytes.all_reduce << ", all_to_all " << bytes.all_to_all << ", all_gather "
       << bytes.all_gather << ", other " << bytes.other;
}

// Elements of each parameter in a bucket, in the order in which they travel, whoever owns them.
inline std::vector<std::int64_t> segments(const Bucket& bucket) {
  std::vector<std::int64_t> lengths;
  int parameter = -1;
  for (const auto& chunk : bucket.chunks) {
    for (const Piece& piece : chunk) {
      if (std::exchange(parameter, piece.parameter) != piece.parameter) lengths.push_back(0);
      lengths.back() += piece.numel;
    }
  }
  return lengths;
}

// The last bucket, where it is dense, carries kDenseFlagFloats.
inline Bytes expected_bytes(DataParallel& parallel, comm::World& world) {
  ExchangeSet& exchanges = parallel.reducer().exchanges();
  const std::vector<Bucket>& buckets = exchanges.layout().buckets;
  Bytes bytes;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const ParameterRoute& route = exchanges.bucket_route(static_cast<int>(i));
    if (route.route == Route::kDense) {
      const std::int64_t floats = buckets[i].elements + (i + 1 == buckets.size() ? kDenseFlagFloats : 0);
      bytes.all_reduce += cost::ring_all_reduce(world.size(), 4 * floats, {}, 4).sent_bytes;
    } else {
      const auto two_hops =
          cost::two_hop_bucket(*codec::make_codec(route.codec), segments(buckets[i]), world.size(), world.rank(), {});
      bytes.all_to_all += two_hops.hop1.sent_bytes;
      bytes.all_gather += two_hops.hop2.sent_bytes;
    }
  }
  return bytes;
}

}  // namespace thinwire::train
