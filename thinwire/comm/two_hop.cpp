#include "thinwire/comm/two_hop.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace thinwire::comm {
namespace {

constexpr std::int64_t kHeader = codec::kMessageHeaderBytes;

at::Tensor bytes_tensor(std::int64_t count) {
  return at::zeros({count}, at::TensorOptions().dtype(at::kByte));
}

std::span<std::byte> span_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return {static_cast<std::byte*>(tensor.data_ptr()) + begin, static_cast<std::size_t>(count)};
}

}  // namespace

TwoHop::TwoHop(Group& hop1, Group& hop2, std::vector<std::int64_t> chunk_bytes, int bucket)
    : hop1_(hop1), hop2_(hop2), chunk_bytes_(std::move(chunk_bytes)), bucket_(bucket) {
  std::int64_t total = 0;
  for (int rank = 0; rank < hop1_.size(); ++rank) {
    outgoing_offset_.push_back(total);
    total += message_bytes(rank);
  }
  own_bytes_ = message_bytes(hop1_.rank());
  sum_bytes_ = kHeader + *std::max_element(chunk_bytes_.begin(), chunk_bytes_.end());
  out_ = bytes_tensor(total);
  in_ = bytes_tensor(own_bytes_ * hop1_.size());
  sum_ = bytes_tensor(sum_bytes_);
  gathered_ = bytes_tensor(sum_bytes_ * hop1_.size());
}

std::int64_t TwoHop::message_bytes(int rank) const {
  return kHeader + chunk_bytes_[rank];
}

codec::MessageHeader TwoHop::header() const {
  return {.flags = flags_, .bucket = static_cast<std::uint32_t>(bucket_), .step = static_cast<std::uint32_t>(step_)};
}

std::span<std::byte> TwoHop::outgoing(int rank) {
  return span_of(out_, outgoing_offset_[rank] + kHeader, chunk_bytes_[rank]);
}

// This rank's own message takes no part in the exchange: incoming() reads it where it was written.
void TwoHop::send(std::uint32_t flags, std::int64_t step) {
  step_ = step;
  flags_ = flags;
  std::vector<std::int64_t> out_splits(hop1_.size(), own_bytes_);
  std::vector<std::int64_t> in_splits(hop1_.size());
  for (int rank = 0; rank < hop1_.size(); ++rank) {
    in_splits[rank] = message_bytes(rank);
    codec::write_header(header(), span_of(out_, outgoing_offset_[rank], kHeader));
  }
  if (hop1_.size() == 1) return;
  pending_ = hop1_.all_to_all(in_, out_, std::move(out_splits), std::move(in_splits), {"hop 1", step, bucket_});
}

std::uint32_t TwoHop::receive() {
  if (hop1_.size() == 1) return flags_;
  pending_->wait();
  pending_.reset();
  for (int rank = 0; rank < hop1_.size(); ++rank) {
    flags_ |= codec::read_header(span_of(in_, rank * own_bytes_, kHeader), header(), rank).flags;
  }
  return flags_;
}

std::span<const std::byte> TwoHop::incoming(int rank) const {
  const std::int64_t bytes = own_bytes_ - kHeader;
  if (rank == hop1_.rank()) return span_of(out_, outgoing_offset_[rank] + kHeader, bytes);
  return span_of(in_, rank * own_bytes_ + kHeader, bytes);
}

std::span<std::byte> TwoHop::sum() {
  return span_of(sum_, kHeader, chunk_bytes_[hop1_.rank()]);
}

void TwoHop::send_sum(std::uint32_t flags) {
  flags_ |= flags;
  codec::write_header(header(), span_of(sum_, 0, kHeader));
  if (hop2_.size() == 1) return;
  pending_ = hop2_.all_gather(gathered_, sum_, {"hop 2", step_, bucket_});
}

std::uint32_t TwoHop::finish() {
  if (hop2_.size() == 1) return flags_;
  pending_->wait();
  pending_.reset();
  for (int rank = 0; rank < hop2_.size(); ++rank) {
    flags_ |= codec::read_header(span_of(gathered_, rank * sum_bytes_, kHeader), header(), rank).flags;
  }
  return flags_;
}

std::span<const std::byte> TwoHop::result(int rank) const {
  if (rank == hop1_.rank()) return span_of(sum_, kHeader, chunk_bytes_[rank]);
  return span_of(gathered_, rank * sum_bytes_ + kHeader, chunk_bytes_[rank]);
}

}  // namespace thinwire::comm
