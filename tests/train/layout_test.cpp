// The cut of gradients into buckets and chunks, element by element.
#include "thinwire/train/ddp/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace thinwire::train {
namespace {

LayoutRequest random_request(std::uint64_t seed, int ranks) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  LayoutRequest request{
      .parameters = {}, .order = {}, .ranks = ranks, .bucket_bytes = 8192 * (1 + below(4)), .first_bucket_bytes = 8192};
  const std::int64_t count = 1 + below(12);
  for (std::int64_t i = 0; i < count; ++i) {
    request.parameters.push_back({1 + below(below(3) == 0 ? 12'000 : 3'000), static_cast<int>(below(3))});
  }
  request.order.resize(count);
  std::iota(request.order.begin(), request.order.end(), 0);
  std::shuffle(request.order.begin(), request.order.end(), random);
  return request;
}

template <typename Check>
void for_random_layouts(Check&& check) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, seed " << seed);
      const LayoutRequest request = random_request(seed, ranks);
      check(request, cut_layout(request));
    }
  }
}

TEST(Layout, HoldsEveryElementOnce) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    std::vector<std::vector<int>> seen;
    for (const LayoutItem& item : request.parameters) seen.emplace_back(item.numel, 0);
    for (const Bucket& bucket : layout.buckets) {
      std::int64_t elements = 0;
      ASSERT_EQ(static_cast<int>(bucket.chunks.size()), request.ranks);
      for (const auto& chunk : bucket.chunks) {
        for (const Piece& piece : chunk) {
          for (std::int64_t i = 0; i < piece.numel; ++i) ++seen[piece.parameter].at(piece.offset + i);
          elements += piece.numel;
        }
      }
      EXPECT_EQ(elements, bucket.elements);
    }
    for (const auto& parameter : seen) {
      EXPECT_TRUE(std::all_of(parameter.begin(), parameter.end(), [](int times) { return times == 1; }));
    }
  });
}

TEST(Layout, PiecesBeginAtUnitsOfTheirParameter) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    for (const Bucket& bucket : layout.buckets) {
      for (const auto& chunk : bucket.chunks) {
        for (const Piece& piece : chunk) {
          EXPECT_EQ(piece.offset % 2048, 0);
          const bool ends_the_parameter = piece.offset + piece.numel == request.parameters[piece.parameter].numel;
          EXPECT_TRUE(piece.numel % 2048 == 0 || ends_the_parameter);
        }
      }
    }
  });
}

// Counts units one at a time, in the order of the owners: 0 0 .. 1 1 .. and no owner has more than ceil(units / n).
TEST(Layout, DealsUnitsInOrderAndEvenly) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    for (const Bucket& bucket : layout.buckets) {
      std::vector<std::int64_t> units(request.ranks, 0);
      for (int owner = 0; owner < request.ranks; ++owner) {
        for (const Piece& piece : bucket.chunks[owner]) {
          for (std::int64_t at = 0; at < piece.numel; at += 2048) ++units[owner];
        }
      }
      const std::int64_t total = std::accumulate(units.begin(), units.end(), std::int64_t{0});
      std::int64_t share = 0;
      while (share * request.ranks < total) ++share;
      std::int64_t left = total;
      for (const std::int64_t own : units) {
        EXPECT_EQ(own, std::min(share, left));
        left -= own;
      }
    }
  });
}

TEST(Layout, NeverMixesKeys) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    for (const Bucket& bucket : layout.buckets) {
      for (const auto& chunk : bucket.chunks) {
        for (const Piece& piece : chunk) EXPECT_EQ(request.parameters[piece.parameter].key, bucket.key);
      }
    }
  });
}

// A bucket's elements are those of its key's flat memory from `begin`, in arrival order: what the dense route sends.
TEST(Layout, BucketsFollowTheFlatMemoryOfTheirKey) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    std::map<int, std::int64_t> next;
    std::map<int, std::vector<std::pair<int, std::int64_t>>> flat;  // by key: (parameter, element)
    for (const int parameter : request.order) {
      const LayoutItem& item = request.parameters[parameter];
      for (std::int64_t i = 0; i < item.numel; ++i) flat[item.key].emplace_back(parameter, i);
    }
    for (const Bucket& bucket : layout.buckets) {
      EXPECT_EQ(bucket.begin, next[bucket.key]);
      std::int64_t at = bucket.begin;
      for (const auto& chunk : bucket.chunks) {
        for (const Piece& piece : chunk) {
          for (std::int64_t i = 0; i < piece.numel; ++i, ++at) {
            ASSERT_EQ(flat[bucket.key].at(at), std::make_pair(piece.parameter, piece.offset + i));
          }
        }
      }
      next[bucket.key] = bucket.begin + bucket.elements;
    }
  });
}

TEST(Layout, BucketsKeepTheirSize) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    for (std::size_t i = 0; i < layout.buckets.size(); ++i) {
      const std::int64_t bytes = i == 0 ? request.first_bucket_bytes : request.bucket_bytes;
      EXPECT_LE(layout.buckets[i].elements * 4, std::max(bytes, request.bucket_bytes)) << "bucket " << i;
    }
  });
}

// Norms and biases lie all over a model; a dense bucket that collected them all would wait for the first layer.
TEST(Layout, ASmallBucketDoesNotWaitForTheLastParameter) {
  LayoutRequest request{.parameters = {}, .order = {}, .ranks = 2, .bucket_bytes = 16384, .first_bucket_bytes = 8192};
  for (int layer = 0; layer < 8; ++layer) {
    request.parameters.push_back({4096, 0});  // weight
    request.parameters.push_back({64, 1});    // bias
  }
  for (int i = 15; i >= 0; --i) request.order.push_back(i);
  const Layout layout = cut_layout(request);
  std::size_t first_with_small = layout.buckets.size();
  for (std::size_t i = layout.buckets.size(); i-- > 0;) {
    if (layout.buckets[i].key == 1) first_with_small = i;
  }
  EXPECT_LT(first_with_small, layout.buckets.size() / 2);
  std::set<int> in_it;
  for (const auto& chunk : layout.buckets[first_with_small].chunks) {
    for (const Piece& piece : chunk) in_it.insert(piece.parameter);
  }
  EXPECT_LT(in_it.size(), 4U) << "all biases share the bucket that waits for the last of them";
}

TEST(Layout, HashTellsLayoutsApart) {
  const LayoutRequest request = random_request(7, 3);
  const std::uint64_t hash = layout_hash(cut_layout(request));
  EXPECT_EQ(hash, layout_hash(cut_layout(request)));
  LayoutRequest other = request;
  other.ranks = 4;
  EXPECT_NE(hash, layout_hash(cut_layout(other)));
  other = request;
  ++other.parameters[0].numel;
  EXPECT_NE(hash, layout_hash(cut_layout(other)));
  other = request;
  other.bucket_bytes += 8192;
  other.first_bucket_bytes += 8192;
  EXPECT_NE(hash, layout_hash(cut_layout(other)));
  other = request;
  std::swap(other.order.front(), other.order.back());
  EXPECT_NE(hash, layout_hash(cut_layout(other)));
}

TEST(Layout, OwnedPiecesAreTheChunksOfARank) {
  for_random_layouts([](const LayoutRequest& request, const Layout& layout) {
    std::int64_t elements = 0;
    for (int rank = 0; rank < request.ranks; ++rank) {
      const std::vector<Piece> owned = owned_pieces(layout, rank);
      for (std::size_t i = 0; i < owned.size(); ++i) {
        elements += owned[i].numel;
        if (i == 0) continue;
        EXPECT_LT(std::make_pair(owned[i - 1].parameter, owned[i - 1].offset),
                  std::make_pair(owned[i].parameter, owned[i].offset));
      }
    }
    std::int64_t all = 0;
    for (const LayoutItem& item : request.parameters) all += item.numel;
    EXPECT_EQ(elements, all);
  });
}

}  // namespace
}  // namespace thinwire::train
