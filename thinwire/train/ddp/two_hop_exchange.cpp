#include "thinwire/train/ddp/two_hop_exchange.hpp"

#include <cmath>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/rng.hpp"
#include "thinwire/codec/fused.hpp"

namespace thinwire::train {
namespace {

std::vector<std::vector<std::size_t>> offsets_of(const Bucket& bucket, const codec::Codec& codec) {
  std::vector<std::vector<std::size_t>> offsets;
  for (const auto& chunk : bucket.chunks) {
    std::vector<std::size_t>& begins = offsets.emplace_back(1, 0);
    for (const Piece& piece : chunk) begins.push_back(begins.back() + codec.wire_bytes({&piece.numel, 1}));
  }
  return offsets;
}

std::vector<std::int64_t> chunk_bytes_of(const std::vector<std::vector<std::size_t>>& offsets) {
  std::vector<std::int64_t> bytes;
  for (const auto& begins : offsets) bytes.push_back(static_cast<std::int64_t>(begins.back()));
  return bytes;
}

double square_sum(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

// Pending residual of a worker, the piece's part of it.
std::span<float> pending_of(codec::ErrorFeedback& worker, const Piece& piece) {
  return worker.pending().subspan(piece.offset, piece.numel);
}

std::span<const float> committed_of(const codec::ErrorFeedback& worker, const Piece& piece) {
  return worker.committed().subspan(piece.offset, piece.numel);
}

codec::ActiveMask mask_of(const GradientState& state, const Piece& piece) {
  if (state.momentum.active.empty()) return {};
  return state.momentum.active.subspan(piece.offset / 64, (piece.numel + 63) / 64);
}

// The steps that both exchanges share: what differs is how a piece is encoded, and what the end of the second hop
// means.
template <class Exchange>
class TwoHopExchange : public Exchange {
 public:
  TwoHopExchange(const ExchangeParts& parts, std::shared_ptr<const codec::Codec> codec)
      : pieces_(parts, std::move(codec)) {}

  void encode_and_send(const ExchangeStep& step) final {
    report_ = {};
    const double begin = monotonic_seconds();
    pieces_.send(step, [&](const Piece& piece, std::span<std::byte> out) { return encode(step, piece, out); });
    report_.encode_s = monotonic_seconds() - begin;
  }
  void reduce_and_send() final { report_.reduce_s = pieces_.reduce(); }
  std::uint32_t finish() override { return pieces_.finish(); }
  const ExchangeReport& report() const final { return report_; }

 protected:
  // Writes the bytes of `piece` to `out` and its pending residual. Returns flags.
  virtual std::uint32_t encode(const ExchangeStep& step, const Piece& piece, std::span<std::byte> out) = 0;

  TwoHopPieces pieces_;
  ExchangeReport report_;
};

class Feedback final : public TwoHopExchange<BucketExchange> {
 public:
  using TwoHopExchange::TwoHopExchange;

  std::uint32_t finish() override {
    const std::uint32_t flags = pieces_.finish();
    const double begin = monotonic_seconds();
    if ((flags & comm::flag::kNonFinite) == 0) decode_all();
    report_.decode_s = monotonic_seconds() - begin;
    return flags;
  }

 private:
  std::uint32_t encode(const ExchangeStep& step, const Piece& piece, std::span<std::byte> out) override {
    GradientState& state = (*pieces_.parts().gradients)[piece.parameter];
    const std::span<const float> gradient = gradient_of(state, piece);
    const std::span<float> pending = pending_of(*state.worker, piece);
    const codec::EncodeReport result = codec::encode_feedback(
        pieces_.codec(), {gradient, step.factor, committed_of(*state.worker, piece), pieces_.seed(1, piece)},
        {&piece.numel, 1}, out, pending);
    if (step.measure_residual) {
      report_.residual_norm2 += square_sum(pending);
      report_.encoded_norm2 += square_sum(gradient) * step.factor * step.factor;
    }
    return result.non_finite ? comm::flag::kNonFinite : 0;
  }

  void decode_all() {
    for (int owner = 0; owner < pieces_.parts().hop1->size(); ++owner) {
      const std::vector<Piece>& pieces = pieces_.pieces(owner);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        at::Tensor& mean = (*pieces_.parts().gradients)[pieces[i].parameter].source;
        pieces_.codec().decode(
            pieces_.result(owner, i), {&pieces[i].numel, 1},
            {mean.mutable_data_ptr<float>() + pieces[i].offset, static_cast<std::size_t>(pieces[i].numel)});
      }
    }
  }
};

class Momentum final : public TwoHopExchange<MomentumExchange> {
 public:
  using TwoHopExchange::TwoHopExchange;

  std::span<const std::byte> encoded(int owner, std::size_t i) const override { return pieces_.result(owner, i); }
  const codec::Codec& codec() const override { return pieces_.codec(); }

 private:
  std::uint32_t encode(const ExchangeStep& step, const Piece& piece, std::span<std::byte> out) override {
    GradientState& state = (*pieces_.parts().gradients)[piece.parameter];
    const std::span<float> pending = pending_of(*state.worker, piece);
    codec::MomentumInput input{.gradient = gradient_of(state, piece),
                               .momentum = state.momentum.momentum.subspan(piece.offset, piece.numel),
                               .residual = committed_of(*state.worker, piece),
                               .beta1 = state.momentum.beta1,
                               .factor = step.factor,
                               .active = mask_of(state, piece),
                               .seed = pieces_.seed(1, piece)};
    const codec::MomentumReport result =
        codec::momentum_encode(pieces_.codec(), input, {&piece.numel, 1}, out, pending);
    if (step.measure_residual) {
      report_.residual_norm2 += square_sum(pending);
      report_.encoded_norm2 += square_sum(input.momentum);
    }
    state.woke = state.woke || result.woke;
    return (result.non_finite ? comm::flag::kNonFinite : 0) | (result.woke ? comm::flag::kWake : 0);
  }
};

}  // namespace

TwoHopPieces::TwoHopPieces(const ExchangeParts& parts, std::shared_ptr<const codec::Codec> codec)
    : parts_(parts),
      codec_(std::move(codec)),
      offsets_(offsets_of(*parts.bucket, *codec_)),
      hops_(*parts.hop1, *parts.hop2, chunk_bytes_of(offsets_), parts.index) {}

std::uint64_t TwoHopPieces::seed(int hop, const Piece& piece) const {
  std::uint64_t seed = mix64(static_cast<std::uint64_t>(step_));
  for (const int part : {hop, parts_.hop1->rank(), piece.parameter})
    seed = mix64(seed ^ static_cast<std::uint64_t>(part));
  return seed;
}

double TwoHopPieces::reduce() {
  hops_.receive();
  const double begin = monotonic_seconds();
  const int own = parts_.hop1->rank();
  std::vector<std::span<const std::byte>> chunks(parts_.hop1->size());
  std::uint32_t flags = 0;
  for (std::size_t i = 0; i < pieces(own).size(); ++i) {
    const Piece& piece = pieces(own)[i];
    for (std::size_t rank = 0; rank < chunks.size(); ++rank) {
      chunks[rank] = part(hops_.incoming(static_cast<int>(rank)), own, i);
    }
    codec::ErrorFeedback& residual = *(*parts_.server)[i].residual;
    const codec::EncodeReport result = codec::accumulate_decode(
        *codec_, {chunks, mask_of((*parts_.gradients)[piece.parameter], piece), seed(2, piece)}, residual.committed(),
        {&piece.numel, 1}, part(hops_.sum(), own, i), residual.pending());
    if (result.non_finite) flags |= comm::flag::kNonFinite;  // a sum of finite values may overflow
  }
  const double reduce_s = monotonic_seconds() - begin;
  hops_.send_sum(flags);
  return reduce_s;
}

std::unique_ptr<BucketExchange> make_feedback_exchange(const ExchangeParts& parts,
                                                       std::shared_ptr<const codec::Codec> codec) {
  return std::make_unique<Feedback>(parts, std::move(codec));
}

std::unique_ptr<MomentumExchange> make_momentum_exchange(const ExchangeParts& parts,
                                                         std::shared_ptr<const codec::Codec> codec) {
  return std::make_unique<Momentum>(parts, std::move(codec));
}

}  // namespace thinwire::train
