// What happens to one full bucket on the communication thread. Three steps, so that those of neighbouring buckets can
// be interleaved: the bytes of one travel while the next is encoded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/comm/group.hpp"
#include "thinwire/comm/two_hop.hpp"
#include "thinwire/train/ddp/gradient_state.hpp"

namespace thinwire::train {

struct ExchangeStep {
  std::int64_t step = 0;
  float factor = 1.0F;      // multiplies every gradient before it is encoded (clipping)
  std::uint32_t flags = 0;  // comm::flag bits that this rank adds to the bucket's messages
  bool measure_residual = false;
};

// What the exchange saw on this rank, for reports.
struct ExchangeReport {
  double encode_s = 0;
  double reduce_s = 0;
  double decode_s = 0;
  double residual_norm2 = 0;  // of the new worker residual, when measured
  double encoded_norm2 = 0;   // of what was encoded
  double sum_norm2 = 0;       // of the mean gradient (dense route only)
};

// An exchange writes gradients of its bucket and pending residuals, nothing else: committed state and parameters stay.
// All methods on the communication thread. Throw Error as comm::Group does.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;
  virtual void encode_and_send(const ExchangeStep& step) = 0;
  virtual void reduce_and_send() = 0;
  // Waits for the last hop. Returns the or of all ranks' flags, the same on every rank.
  virtual std::uint32_t finish() = 0;
  virtual const ExchangeReport& report() const = 0;
};

struct ExchangeParts {
  const Bucket* bucket = nullptr;
  int index = 0;                                    // of the bucket
  std::vector<GradientState>* gradients = nullptr;  // by parameter
  std::vector<ServerResidual>* server = nullptr;    // this rank's, of this bucket, in piece order; empty when dense
  comm::Group* hop1 = nullptr;
  comm::Group* hop2 = nullptr;
};

// float32 all-reduce of `flat` (the bucket's elements, then kDenseFlagFloats when `carries_flags`), divided by the
// ranks.
//   steps 2(n-1)    bytes as comm::Counters says    error: rounding of the sum
inline constexpr std::int64_t kDenseFlagFloats = 12;
std::unique_ptr<BucketExchange> make_dense_exchange(const ExchangeParts& parts, at::Tensor flat, bool carries_flags);

// Gradient through the codec with error feedback at both hops; ends with the decoded mean in each parameter's `source`.
std::unique_ptr<BucketExchange> make_feedback_exchange(const ExchangeParts& parts,
                                                       std::shared_ptr<const codec::Codec> codec);

// Momentum of 1-bit Adam's second stage. Decodes nothing: `encoded` hands the agreed bytes to the optimizer's fused
// loop.
class MomentumExchange : public BucketExchange {
 public:
  // Bytes of one piece, valid until the bucket's next exchange.
  virtual std::span<const std::byte> encoded(int owner, std::size_t piece_in_chunk) const = 0;
  virtual const codec::Codec& codec() const = 0;
};
std::unique_ptr<MomentumExchange> make_momentum_exchange(const ExchangeParts& parts,
                                                         std::shared_ptr<const codec::Codec> codec);

}  // namespace thinwire::train
