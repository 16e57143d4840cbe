// Dense: the sum of float32 gradients, divided by the number of ranks; flags ride behind the last bucket.
#include <ATen/ops/dot.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sum.h>

#include <cmath>

#include "thinwire/base/clock.hpp"
#include "thinwire/train/ddp/exchange.hpp"

namespace thinwire::train {
namespace {

// One float per flag that a dense bucket can carry; more than zero after the sum: some rank set it.
constexpr std::uint32_t kFlagOf[] = {comm::flag::kUnused,    comm::flag::kActive,    comm::flag::kDropped,
                                     comm::flag::kNonFinite, comm::flag::kTurn,      comm::flag::kTurn << 1,
                                     comm::flag::kTurn << 2, comm::flag::kTurn << 3, comm::flag::kTurn << 4,
                                     comm::flag::kTurn << 5, comm::flag::kTurn << 6, comm::flag::kTurn << 7};
static_assert(std::size(kFlagOf) == kDenseFlagFloats && comm::flag::kTurns == 8);

class DenseExchange final : public BucketExchange {
 public:
  DenseExchange(const ExchangeParts& parts, at::Tensor flat, bool carries_flags)
      : parts_(parts), flat_(std::move(flat)), carries_flags_(carries_flags) {}

  void encode_and_send(const ExchangeStep& step) override {
    report_ = {};
    if (carries_flags_) write_flags(step.flags);
    pending_ = parts_.hop1->all_reduce(flat_, comm::ReduceOp::kSum, {"dense", step.step, parts_.index});
  }

  void reduce_and_send() override {
    pending_->wait();
    pending_.reset();
  }

  std::uint32_t finish() override {
    const double begin = monotonic_seconds();
    at::Tensor values = flat_.narrow(0, 0, parts_.bucket->elements);
    if (parts_.hop1->size() > 1) values.mul_(1.0 / parts_.hop1->size());
    std::uint32_t flags = carries_flags_ ? read_flags() : 0;
    report_.sum_norm2 = at::dot(values, values).item<double>();
    if (!std::isfinite(report_.sum_norm2)) {  // an element is not finite, or only the squares overflow float32
      if (!at::isfinite(values).all().item<bool>()) flags |= comm::flag::kNonFinite;
      report_.sum_norm2 = at::sum(at::square(values.to(at::kDouble))).item<double>();
    }
    report_.decode_s = monotonic_seconds() - begin;
    return flags;
  }

  const ExchangeReport& report() const override { return report_; }

 private:
  void write_flags(std::uint32_t flags) {
    float* at = flat_.mutable_data_ptr<float>() + parts_.bucket->elements;
    for (const std::uint32_t flag : kFlagOf) *at++ = (flags & flag) != 0 ? 1.0F : 0.0F;
  }

  std::uint32_t read_flags() const {
    const float* at = flat_.const_data_ptr<float>() + parts_.bucket->elements;
    std::uint32_t flags = 0;
    for (const std::uint32_t flag : kFlagOf) flags |= *at++ > 0 ? flag : 0;
    return flags;
  }

  ExchangeParts parts_;
  at::Tensor flat_;
  bool carries_flags_;
  ExchangeReport report_;
  comm::Handle pending_;
};

}  // namespace

std::unique_ptr<BucketExchange> make_dense_exchange(const ExchangeParts& parts, at::Tensor flat, bool carries_flags) {
  return std::make_unique<DenseExchange>(parts, std::move(flat), carries_flags);
}

}  // namespace thinwire::train
