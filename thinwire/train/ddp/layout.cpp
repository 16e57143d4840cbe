#include "thinwire/train/ddp/layout.hpp"

#include <algorithm>
#include <map>

#include "thinwire/base/hash.hpp"
#include "thinwire/codec/codec.hpp"

namespace thinwire::train {
namespace {

using codec::kUnitElements;

// A bucket that is being filled, as a list of ranges of parameters.
struct Open {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
  std::vector<Piece> ranges;
};

void append(std::vector<Piece>& pieces, const Piece& piece) {
  if (!pieces.empty() && pieces.back().parameter == piece.parameter &&
      pieces.back().offset + pieces.back().numel == piece.offset) {
    pieces.back().numel += piece.numel;
  } else {
    pieces.push_back(piece);
  }
}

std::int64_t units_in(std::int64_t elements) {
  return (elements + kUnitElements - 1) / kUnitElements;
}

// Deals the units of a bucket in order, ceil(units / ranks) to each owner.
std::vector<std::vector<Piece>> deal(const std::vector<Piece>& ranges, int ranks) {
  std::int64_t units = 0;
  for (const Piece& range : ranges) units += units_in(range.numel);
  const std::int64_t share = std::max<std::int64_t>(1, (units + ranks - 1) / ranks);
  std::vector<std::vector<Piece>> chunks(ranks);
  std::int64_t dealt = 0;
  for (const Piece& range : ranges) {
    for (std::int64_t at = 0; at < range.numel; at += kUnitElements, ++dealt) {
      append(chunks[dealt / share], {range.parameter, range.offset + at, std::min(kUnitElements, range.numel - at)});
    }
  }
  return chunks;
}

class Cutter {
 public:
  explicit Cutter(const LayoutRequest& request) : request_(request) {}

  Layout cut() {
    layout_.ranks = request_.ranks;
    layout_.order = request_.order;
    for (const int parameter : request_.order) add(parameter);
    close_all();
    return std::move(layout_);
  }

 private:
  void add(int parameter) {
    const LayoutItem& item = request_.parameters[parameter];
    for (std::int64_t at = 0; at < item.numel;) {
      Open& open = open_[item.key];
      const std::int64_t room = std::max<std::int64_t>(capacity() - open.elements, 0) / kUnitElements * kUnitElements;
      const std::int64_t take = std::min(item.numel - at, std::max(room, kUnitElements));
      append(open.ranges, {parameter, at, take});
      open.elements += take;
      at += take;
      if (open.elements + kUnitElements > capacity()) close_all();
    }
  }

  // In elements; the first bucket is smaller, so that something travels early.
  std::int64_t capacity() const {
    return (layout_.buckets.empty() ? request_.first_bucket_bytes : request_.bucket_bytes) / 4;
  }

  void close_all() {
    for (auto& [key, open] : open_) {
      if (open.elements == 0) continue;
      layout_.buckets.push_back({key, open.begin, open.elements, deal(open.ranges, request_.ranks)});
      open = Open{open.begin + open.elements, 0, {}};
    }
  }

  const LayoutRequest& request_;
  Layout layout_;
  std::map<int, Open> open_;
};

}  // namespace

Layout cut_layout(const LayoutRequest& request) {
  return Cutter(request).cut();
}

std::uint64_t layout_hash(const Layout& layout) {
  std::vector<std::int64_t> words{layout.ranks, static_cast<std::int64_t>(layout.buckets.size())};
  words.insert(words.end(), layout.order.begin(), layout.order.end());
  for (const Bucket& bucket : layout.buckets) {
    words.insert(words.end(), {bucket.key, bucket.begin, bucket.elements});
    for (const auto& chunk : bucket.chunks) {
      words.push_back(static_cast<std::int64_t>(chunk.size()));
      for (const Piece& piece : chunk) words.insert(words.end(), {piece.parameter, piece.offset, piece.numel});
    }
  }
  return hash_bytes(std::as_bytes(std::span(words)));
}

std::vector<Piece> owned_pieces(const Layout& layout, int rank) {
  std::vector<Piece> pieces;
  for (const Bucket& bucket : layout.buckets) {
    pieces.insert(pieces.end(), bucket.chunks[rank].begin(), bucket.chunks[rank].end());
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.parameter != b.parameter ? a.parameter < b.parameter : a.offset < b.offset;
  });
  return pieces;
}

}  // namespace thinwire::train
