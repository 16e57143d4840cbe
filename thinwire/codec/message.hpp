// The header in front of every encoded chunk that travels between ranks: 16 bytes, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::codec {

inline constexpr std::int64_t kMessageHeaderBytes = 16;
inline constexpr std::uint32_t kMessageMagic = 0x31575754U;  // "TWW1" as bytes

// On the wire in this order, four bytes each: magic, flags, bucket, step.
struct MessageHeader {
  std::uint32_t magic = kMessageMagic;
  std::uint32_t flags = 0;  // what the bits mean is the sender's business; a receiver ors those of all messages
  std::uint32_t bucket = 0;
  std::uint32_t step = 0;  // low 32 bits of the optimizer step
};
static_assert(sizeof(MessageHeader) == kMessageHeaderBytes);

// REQUIRES: out.size() >= kMessageHeaderBytes. Writes the first bytes of `out`.
void write_header(const MessageHeader& header, std::span<std::byte> out);

// Throws Error kCorrupt when `bytes` are too few, kMismatch when magic, bucket or step are not those of `want`, naming
// the rank `from`: the ranks then work on different buckets. Flags are returned, not compared.
MessageHeader read_header(std::span<const std::byte> bytes, const MessageHeader& want, int from);

}  // namespace thinwire::codec
