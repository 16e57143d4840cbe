// A 64-bit hash of bytes, for layouts, settings and state that must be equal on all ranks. Not cryptographic.
#pragma once

#include <cstdint>
#include <cstddef>
#include <span>
#include <string_view>

namespace thinwire {

// Same bytes and seed, same hash, on every machine (little-endian words are read byte by byte).
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0);

}  // namespace thinwire
