#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/message.hpp"
#include "thinwire/cost/collective.hpp"

namespace thinwire::cost {
namespace {

constexpr Link kGigabit{.latency_s = 50e-6, .bandwidth_bytes_per_s = 125e6};
using Lengths = std::vector<std::int64_t>;

// An independent oracle: labels every element with its owner, really encodes each owner's pieces, really builds the
// messages of both hops for every pair of ranks and counts their bytes.
class Exchange {
 public:
  Exchange(const codec::Codec& codec, const Lengths& segments, int ranks) : ranks_(ranks) {
    std::int64_t units = 0;
    for (std::int64_t length : segments)
      for (std::int64_t element = 0; element < length; ++element) units += element % 2048 == 0 ? 1 : 0;
    std::int64_t share = 0;
    while (share * ranks < units) ++share;
    std::vector<Lengths> pieces(ranks);
    std::int64_t unit = -1;
    for (std::int64_t length : segments) {
      std::map<int, std::int64_t> of_owner;
      for (std::int64_t element = 0; element < length; ++element) {
        if (element % 2048 == 0) ++unit;
        ++of_owner[static_cast<int>(unit / share)];
      }
      for (const auto& [owner, count] : of_owner) pieces.at(owner).push_back(count);
    }
    for (const Lengths& own : pieces) messages_.push_back(header() + encoded(codec, own));
  }

  std::int64_t hop1_sent_by(int rank) const {
    std::int64_t sent = 0;
    for (int to = 0; to < ranks_; ++to)
      if (to != rank) sent += messages_[to];
    return sent;
  }
  std::int64_t hop2_sent_by(int rank) const {
    std::int64_t padded = 0;
    for (std::int64_t message : messages_)
      while (padded < message) ++padded;
    std::int64_t sent = 0;
    for (int to = 0; to < ranks_; ++to)
      if (to != rank) sent += padded;
    return sent;
  }

 private:
  static std::int64_t header() {
    std::vector<std::byte> bytes(100, std::byte{0xEE});
    codec::write_header({.flags = 0, .bucket = 0, .step = 0}, bytes);
    return std::find(bytes.begin(), bytes.end(), std::byte{0xEE}) - bytes.begin();
  }
  static std::int64_t encoded(const codec::Codec& codec, const Lengths& pieces) {
    std::int64_t elements = 0;
    for (std::int64_t length : pieces) elements += length;
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec.wire_bytes(pieces)));
    codec.encode(std::vector<float>(static_cast<std::size_t>(elements), 1.0F), pieces, bytes);
    return static_cast<std::int64_t>(bytes.size());
  }

  int ranks_;
  std::vector<std::int64_t> messages_;
};

TEST(TwoHopBucket, SendsWhatBuildingTheMessagesSends) {
  const std::vector<Lengths> buckets = {
      {}, {1}, {2048}, {2049}, {4096, 1, 1}, {10'000, 0, 3, 2048, 5000}, {3 * 2048 + 5}, {7, 7, 7, 7, 7}, {100'000}};
  for (const char* text : {"fp32", "bf16", "int8", "int4", "one_bit", "one_bit:block=64"}) {
    const auto codec = codec::make_codec(text);
    for (const Lengths& segments : buckets) {
      for (int ranks = 1; ranks <= 8; ++ranks) {
        const Exchange exchange(*codec, segments, ranks);
        for (int rank = 0; rank < ranks; ++rank) {
          const TwoHopCost cost = two_hop_bucket(*codec, segments, ranks, rank, kGigabit);
          ASSERT_EQ(cost.hop1.sent_bytes, exchange.hop1_sent_by(rank)) << text << ", rank " << rank << " of " << ranks;
          ASSERT_EQ(cost.hop2.sent_bytes, exchange.hop2_sent_by(rank)) << text << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
}

// By hand: 3 units of one_bit (260 bytes each) on 2 ranks are chunks of 520 and 260 bytes.
TEST(TwoHopBucket, UnevenChunksByHand) {
  const auto codec = codec::make_codec("one_bit");
  const Lengths segments{3 * 2048};
  EXPECT_EQ(chunk_wire_bytes(*codec, segments, 2), (Lengths{520, 260}));
  EXPECT_EQ(two_hop_bucket(*codec, segments, 2, 0, kGigabit).hop1.sent_bytes, 16 + 260);
  EXPECT_EQ(two_hop_bucket(*codec, segments, 2, 1, kGigabit).hop1.sent_bytes, 16 + 520);
  EXPECT_EQ(two_hop_bucket(*codec, segments, 2, 0, kGigabit).hop2.sent_bytes, 16 + 520);
  EXPECT_EQ(chunk_wire_bytes(*codec, segments, 8), (Lengths{260, 260, 260, 0, 0, 0, 0, 0})) << "empty chunks";
}

TEST(TwoHopBucket, OfEqualChunksIsTheShortFormula) {
  const auto codec = codec::make_codec("int4");
  const Lengths segments{8 * 2048};
  const std::int64_t message = codec::kMessageHeaderBytes + codec->wire_bytes(Lengths{2 * 2048});
  const TwoHopCost cost = two_hop_bucket(*codec, segments, 4, 2, kGigabit);
  const Cost equal = two_hop_all_reduce(4, message, kGigabit);
  EXPECT_EQ(cost.hop1.sent_bytes + cost.hop2.sent_bytes, equal.sent_bytes);
  EXPECT_NEAR(cost.hop1.seconds + cost.hop2.seconds, equal.seconds, 1e-12);
}

TEST(TwoHopBucket, RefusesRanksThatDoNotExist) {
  const auto codec = codec::make_codec("fp32");
  EXPECT_THROW(two_hop_bucket(*codec, Lengths{1}, 0, 0, kGigabit), Error);
  EXPECT_THROW(two_hop_bucket(*codec, Lengths{1}, 2, 2, kGigabit), Error);
  EXPECT_THROW(two_hop_bucket(*codec, Lengths{1}, 2, -1, kGigabit), Error);
  EXPECT_THROW(two_hop_bucket(*codec, Lengths{-1}, 2, 0, kGigabit), Error);
}

}  // namespace
}  // namespace thinwire::cost
