// How gradients are cut into buckets and buckets into the chunks that ranks own. Pure arithmetic, no tensors.
//
// Buckets and chunks are made of units: codec::kUnitElements elements cut inside each parameter from its first one (the
// last unit of a parameter may be short).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace thinwire::train {

// A range of one parameter: whole units, except for the parameter's last one.
struct Piece {
  int parameter = 0;
  std::int64_t offset = 0;  // elements, a multiple of a unit
  std::int64_t numel = 0;
  bool operator==(const Piece&) const = default;
};

struct Bucket {
  int key = 0;             // buckets with the same key share dtype, device, kind and optimizer group
  std::int64_t begin = 0;  // first element within the key's gradient memory
  std::int64_t elements = 0;
  std::vector<std::vector<Piece>> chunks;  // by owner, one per rank; the last may be short or empty
};

// What decides where a parameter may travel: parameters with different keys never share a bucket.
struct LayoutItem {
  std::int64_t numel = 0;
  int key = 0;
};

struct LayoutRequest {
  std::vector<LayoutItem> parameters;
  std::vector<int> order;  // parameters in the order in which their gradients arrive
  int ranks = 1;
  std::int64_t bucket_bytes = 4 << 20;  // of fp32 gradients
  std::int64_t first_bucket_bytes = 1 << 20;
};

struct Layout {
  int ranks = 1;
  std::vector<int> order;
  std::vector<Bucket> buckets;  // in the order in which they travel
};

// Fills buckets in arrival order. When one is full, all that are open are closed with it, so that no small bucket waits
// for the last parameter. REQUIRES: order is a permutation of the parameters, ranks >= 1, bucket bytes >= one unit.
Layout cut_layout(const LayoutRequest& request);

// Equal exactly when two layouts are.
std::uint64_t layout_hash(const Layout& layout);

// For every parameter the ranges a rank owns, by parameter and offset: where the server residuals live.
std::vector<Piece> owned_pieces(const Layout& layout, int rank);

}  // namespace thinwire::train
