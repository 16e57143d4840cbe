// The compressed all-reduce: two hops of encoded chunks (1-bit Adam, Tang et al. 2021, section 4.2; gather-scatter
// form).
//
//   hop 1  all-to-all: rank r receives chunk r of everyone       sends sum over r != i of (h + wire(chunk_r)) bytes
//          the owner adds them and encodes the sum
//   hop 2  all-gather: everyone receives every owner's sum       sends (n-1) * (h + wire(largest chunk)) bytes
//   steps 2(n-1), h = codec::kMessageHeaderBytes; error: the codec's at both hops, carried by the caller's residuals
//
// This class moves bytes and flags; encoding and adding up is the caller's, into the spans it hands out. Stopping after
// `receive` is the reduce-scatter form. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "thinwire/codec/message.hpp"
#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

// Ride in the header of every message and are or-ed on the way: after `finish` every rank has the same ones.
namespace flag {
inline constexpr std::uint32_t kNonFinite = 1U << 0;  // a NaN or an infinity on some rank: skip the step
inline constexpr std::uint32_t kWake = 1U << 1;       // an element with a frozen zero variance got a gradient
inline constexpr std::uint32_t kUnused = 1U << 2;     // a parameter without a gradient on some rank
inline constexpr std::uint32_t kActive = 1U << 3;     // some rank still has batches
inline constexpr std::uint32_t kDropped = 1U << 4;    // some rank gave its step up: skip it
// One of kTurns bits, for a count modulo kTurns that must be the same on every rank: two of them after the exchange say
// that it is not.
inline constexpr int kTurns = 8;
inline constexpr std::uint32_t kTurn = 1U << 8;
}  // namespace flag

class TwoHop {
 public:
  // `chunk_bytes[r]`: encoded size of the chunk that rank r owns. REQUIRES: the same on every rank.
  TwoHop(Group& hop1, Group& hop2, std::vector<std::int64_t> chunk_bytes, int bucket);

  // Where this rank's contribution to rank r's chunk goes.
  std::span<std::byte> outgoing(int rank);
  void send(std::uint32_t flags, std::int64_t step);

  // Waits for hop 1; returns everyone's flags. Throws Error kMismatch when a message is of another bucket or step.
  std::uint32_t receive();
  // Rank r's contribution to this rank's chunk, own included.
  std::span<const std::byte> incoming(int rank) const;

  // Where the owner writes its encoded sum.
  std::span<std::byte> sum();
  // `flags`: what the owner saw in the sum, such as an overflow.
  void send_sum(std::uint32_t flags = 0);

  // Waits for hop 2; returns the flags that every rank now has.
  std::uint32_t finish();
  // The encoded sum of rank r's chunk; stays until the next `send_sum`.
  std::span<const std::byte> result(int rank) const;

  const std::vector<std::int64_t>& chunk_bytes() const { return chunk_bytes_; }

 private:
  std::int64_t message_bytes(int rank) const;
  codec::MessageHeader header() const;

  Group& hop1_;
  Group& hop2_;
  std::vector<std::int64_t> chunk_bytes_;
  std::vector<std::int64_t> outgoing_offset_;  // of each rank's message in out_
  std::int64_t own_bytes_ = 0;                 // one incoming message
  std::int64_t sum_bytes_ = 0;                 // one hop-2 message, padded to the largest chunk
  int bucket_;
  std::int64_t step_ = 0;
  std::uint32_t flags_ = 0;
  at::Tensor out_, in_, sum_, gathered_;  // uint8
  Handle pending_;
};

}  // namespace thinwire::comm
