// What the feedback and the momentum exchange share: pieces of a bucket through a codec over both hops.
#pragma once

#include <span>
#include <vector>

#include "thinwire/train/ddp/exchange.hpp"

namespace thinwire::train {

class TwoHopPieces {
 public:
  TwoHopPieces(const ExchangeParts& parts, std::shared_ptr<const codec::Codec> codec);

  const ExchangeParts& parts() const { return parts_; }
  const codec::Codec& codec() const { return *codec_; }
  const std::vector<Piece>& pieces(int owner) const { return parts_.bucket->chunks[owner]; }

  // Calls encode(piece, bytes) for every piece of every chunk, or-s the flags it returns to the step's, starts hop 1.
  template <typename Encode>
  void send(const ExchangeStep& step, Encode&& encode) {
    std::uint32_t flags = step.flags;
    step_ = step.step;
    for (std::size_t owner = 0; owner < offsets_.size(); ++owner) {
      const std::span<std::byte> message = hops_.outgoing(static_cast<int>(owner));
      for (std::size_t i = 0; i < offsets_[owner].size() - 1; ++i) {
        flags |= encode(pieces(static_cast<int>(owner))[i], part(message, owner, i));
      }
    }
    hops_.send(flags, step.step);
  }

  // What the codec draws random numbers from: of its own for every step, rank, hop and parameter, and the same again
  // after a resume.
  std::uint64_t seed(int hop, const Piece& piece) const;

  // At the owner, after hop 1: adds up, encodes the sum with the server residual, starts hop 2.
  double reduce();  // seconds spent on the owner's part, waiting left out

  std::uint32_t finish() { return hops_.finish(); }

  // The agreed bytes of one piece.
  std::span<const std::byte> result(int owner, std::size_t i) const { return part(hops_.result(owner), owner, i); }

 private:
  template <typename Bytes>
  Bytes part(Bytes bytes, std::size_t owner, std::size_t i) const {
    return bytes.subspan(offsets_[owner][i], offsets_[owner][i + 1] - offsets_[owner][i]);
  }

  ExchangeParts parts_;
  std::shared_ptr<const codec::Codec> codec_;
  std::vector<std::vector<std::size_t>> offsets_;  // by owner: where each piece's bytes begin, and their end
  comm::TwoHop hops_;
  std::int64_t step_ = 0;  // of the last send
};

}  // namespace thinwire::train
