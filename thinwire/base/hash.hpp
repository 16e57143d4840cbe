// A 64-bit hash of bytes, for layouts, settings and state that must be equal on all ranks. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace thinwire {

// XXH64 (Yann Collet, github.com/Cyan4973/xxHash, doc/xxhash_spec.md): several GB/s, the same on every machine.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0);

}  // namespace thinwire
