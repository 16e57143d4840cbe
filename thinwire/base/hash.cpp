#include "thinwire/base/hash.hpp"

#include <bit>
#include <cstring>

namespace thinwire {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;
constexpr std::size_t kStripeBytes = 32;

template <class Word>
Word read_little(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  if constexpr (std::endian::native == std::endian::big) {
    word = sizeof(Word) == 8 ? static_cast<Word>(__builtin_bswap64(word)) : static_cast<Word>(__builtin_bswap32(word));
  }
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

// Four independent lanes of 8 bytes; `at` ends behind the last whole stripe.
std::uint64_t hash_stripes(const std::byte*& at, std::size_t stripes, std::uint64_t seed) {
  std::uint64_t lane[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  for (; stripes > 0; --stripes, at += kStripeBytes)
    for (int l = 0; l < 4; ++l) lane[l] = round(lane[l], read_little<std::uint64_t>(at + 8 * l));
  std::uint64_t hash = std::rotl(lane[0], 1) + std::rotl(lane[1], 7) + std::rotl(lane[2], 12) + std::rotl(lane[3], 18);
  for (std::uint64_t value : lane) hash = (hash ^ round(0, value)) * kPrime1 + kPrime4;
  return hash;
}

std::uint64_t hash_tail(const std::byte* at, std::size_t bytes, std::uint64_t hash) {
  for (; bytes >= 8; bytes -= 8, at += 8) {
    hash = std::rotl(hash ^ round(0, read_little<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (bytes >= 4) {
    hash = std::rotl(hash ^ (read_little<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    bytes -= 4;
    at += 4;
  }
  for (; bytes > 0; --bytes, ++at)
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  return hash;
}

std::uint64_t avalanche(std::uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::byte* at = bytes.data();
  const std::size_t stripes = bytes.size() / kStripeBytes;
  std::uint64_t hash = stripes > 0 ? hash_stripes(at, stripes, seed) : seed + kPrime5;
  hash += bytes.size();
  return avalanche(hash_tail(at, bytes.size() % kStripeBytes, hash));
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace thinwire
