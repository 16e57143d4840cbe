#include "thinwire/base/hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

namespace thinwire {
namespace {

// Published values of XXH64.
TEST(Hash, IsXxh64) {
  EXPECT_EQ(hash_text(""), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(hash_text("a"), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(hash_text("abc"), 0x44BC2CF5AD770999ULL);
  EXPECT_EQ(hash_text("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1ULL);
}

TEST(Hash, EveryBitCounts) {
  for (std::size_t size : {1, 3, 4, 7, 8, 12, 31, 32, 33, 63, 64, 100}) {
    std::vector<std::byte> bytes(size, std::byte{0x5A});
    std::set<std::uint64_t> seen{hash_bytes(bytes), hash_bytes(bytes, 1), hash_bytes(bytes, ~0ULL)};
    for (std::size_t i = 0; i < size; ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] ^= static_cast<std::byte>(1 << bit);
        seen.insert(hash_bytes(bytes));
        bytes[i] ^= static_cast<std::byte>(1 << bit);
      }
    }
    EXPECT_EQ(seen.size(), 3 + 8 * size) << size << " bytes";
  }
}

TEST(Hash, FlippingOneBitFlipsAboutHalf) {
  std::string text(200, 'x');
  const std::uint64_t before = hash_text(text);
  int flipped = 0;
  for (char& c : text) {
    c = static_cast<char>(c ^ 1);
    flipped += std::popcount(before ^ hash_text(text));
    c = static_cast<char>(c ^ 1);
  }
  EXPECT_NEAR(flipped / 200.0, 32.0, 2.0);
}

TEST(Hash, DoesNotDependOnTheAddress) {
  const std::string text = "0123456789abcdefghijklmnopqrstuvwxyz0123456789";
  for (std::size_t shift = 0; shift < 9; ++shift) {
    const std::string memory = std::string(shift, '-') + text;
    EXPECT_EQ(hash_text(std::string_view(memory).substr(shift)), hash_text(text));
  }
}

}  // namespace
}  // namespace thinwire
