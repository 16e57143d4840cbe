#include "thinwire/train/ddp/residual_move.hpp"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

namespace thinwire::train {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

std::int64_t elements_in(const std::vector<Piece>& pieces) {
  std::int64_t elements = 0;
  for (const Piece& piece : pieces) elements += piece.numel;
  return elements;
}

std::vector<Piece> compressed_pieces(const Layout& layout, int rank, const std::function<bool(int)>& compressed) {
  std::vector<Piece> pieces = owned_pieces(layout, rank);
  std::erase_if(pieces, [&](const Piece& piece) { return !compressed(piece.parameter); });
  return pieces;
}

// Finds the residual that holds a range and the range's place in it.
const float* find(const std::vector<ServerResidual>& held, const Piece& range) {
  for (const ServerResidual& one : held) {
    const Piece& piece = one.piece;
    if (piece.parameter == range.parameter && piece.offset <= range.offset &&
        range.offset + range.numel <= piece.offset + piece.numel) {
      return one.residual->committed().data() + (range.offset - piece.offset);
    }
  }
  return nullptr;  // the parameter was dense until now: its residual is zero
}

struct Plan {
  std::vector<std::vector<Piece>> ranges;  // by peer
  std::vector<std::int64_t> bytes;
};

Plan plan_for(int ranks, const std::function<std::vector<Piece>(int)>& ranges_with) {
  Plan plan;
  for (int peer = 0; peer < ranks; ++peer) {
    plan.ranges.push_back(ranges_with(peer));
    plan.bytes.push_back(elements_in(plan.ranges.back()) * kFloat);
  }
  return plan;
}

at::Tensor bytes_for(const Plan& plan) {
  std::int64_t total = 0;
  for (const std::int64_t bytes : plan.bytes) total += bytes;
  return at::zeros({total}, at::TensorOptions().dtype(at::kByte));
}

// Scatters received ranges into the residuals of the new cut.
void place(const Plan& incoming, const at::Tensor& bytes, std::vector<ServerResidual>& into) {
  std::vector<std::vector<float>> values;
  for (const ServerResidual& one : into) values.emplace_back(static_cast<std::size_t>(one.piece.numel), 0.0F);
  const std::byte* at = static_cast<const std::byte*>(bytes.const_data_ptr());
  for (const auto& ranges : incoming.ranges) {
    for (const Piece& range : ranges) {
      for (std::size_t i = 0; i < into.size(); ++i) {
        const Piece& piece = into[i].piece;
        if (piece.parameter != range.parameter || range.offset < piece.offset ||
            range.offset >= piece.offset + piece.numel) {
          continue;
        }
        std::memcpy(values[i].data() + (range.offset - piece.offset), at, range.numel * kFloat);
      }
      at += range.numel * kFloat;
    }
  }
  for (std::size_t i = 0; i < into.size(); ++i) into[i].residual->restore(values[i]);
}

}  // namespace

std::vector<Piece> intersection(const std::vector<Piece>& a, const std::vector<Piece>& b) {
  std::vector<Piece> both;
  for (const Piece& x : a) {
    for (const Piece& y : b) {
      if (x.parameter != y.parameter) continue;
      const std::int64_t begin = std::max(x.offset, y.offset);
      const std::int64_t end = std::min(x.offset + x.numel, y.offset + y.numel);
      if (begin < end) both.push_back({x.parameter, begin, end - begin});
    }
  }
  return both;
}

std::vector<ServerResidual> move_residuals(comm::Group& group, std::vector<ServerResidual> held, const Layout& before,
                                           const Layout& after, const std::function<bool(int)>& compressed) {
  const auto old_of = [&](int rank) { return compressed_pieces(before, rank, compressed); };
  const auto new_of = [&](int rank) { return compressed_pieces(after, rank, compressed); };
  const std::vector<Piece> my_old = old_of(group.rank());
  const std::vector<Piece> my_new = new_of(group.rank());
  const Plan outgoing = plan_for(group.size(), [&](int peer) { return intersection(my_old, new_of(peer)); });
  const Plan incoming = plan_for(group.size(), [&](int peer) { return intersection(old_of(peer), my_new); });
  const at::Tensor out = bytes_for(outgoing);
  const at::Tensor in = bytes_for(incoming);
  std::byte* at = static_cast<std::byte*>(out.mutable_data_ptr());
  for (const auto& ranges : outgoing.ranges) {
    for (const Piece& range : ranges) {
      if (const float* values = find(held, range)) std::memcpy(at, values, range.numel * kFloat);
      at += range.numel * kFloat;
    }
  }
  group.all_to_all(in, out, incoming.bytes, outgoing.bytes, {"move of residuals"})->wait();
  std::vector<ServerResidual> moved;
  for (const Piece& piece : my_new) moved.push_back({piece, std::make_unique<codec::ErrorFeedback>(piece.numel)});
  place(incoming, in, moved);
  return moved;
}

}  // namespace thinwire::train
