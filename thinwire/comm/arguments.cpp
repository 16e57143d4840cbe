#include "thinwire/comm/arguments.hpp"

#include <numeric>
#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/failure.hpp"

namespace thinwire::comm {
namespace {

[[noreturn]] void refuse(const char* place, const OpTag& tag, const std::string& what, const std::string& got,
                         const std::string& want) {
  fail(ErrorCode::kInvalidArgument, {.place = std::string("comm::") + place,
                                     .what = to_string(tag) + ": " + what,
                                     .got = got,
                                     .want = want,
                                     .hint = ""});
}

void check_tensor(const char* place, const at::Tensor& tensor, const OpTag& tag) {
  if (!tensor.defined()) refuse(place, tag, "tensor", "an undefined one", "a defined one");
  if (!tensor.is_contiguous()) refuse(place, tag, "memory layout", "a strided tensor", "a contiguous one");
}

void check_pair(const char* place, const at::Tensor& out, const at::Tensor& in, const OpTag& tag) {
  check_tensor(place, out, tag);
  check_tensor(place, in, tag);
  if (out.scalar_type() != in.scalar_type())
    refuse(place, tag, "element types of out and in",
           std::string(toString(out.scalar_type())) + " and " + toString(in.scalar_type()), "the same");
}

void check_count(const char* place, const OpTag& tag, const char* what, std::int64_t got, std::int64_t want) {
  if (got != want) refuse(place, tag, what, std::to_string(got), std::to_string(want));
}

void check_reducible(const char* place, const at::Tensor& tensor, ReduceOp op, const OpTag& tag) {
  const auto type = tensor.scalar_type();
  const bool number = type == at::kFloat || type == at::kDouble || type == at::kLong;
  if (number || (type == at::kByte && op == ReduceOp::kMax)) return;
  refuse(place, tag, "element type", toString(type), "Float, Double, Long, or Byte with kMax");
}

void check_splits(const char* which, int size, const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                  const OpTag& tag) {
  check_count("all_to_all", tag, which, static_cast<std::int64_t>(splits.size()), size);
  for (const std::int64_t split : splits)
    if (split < 0) refuse("all_to_all", tag, which, std::to_string(split), "at least 0");
  check_count("all_to_all", tag, which, std::accumulate(splits.begin(), splits.end(), std::int64_t{0}), tensor.numel());
}

}  // namespace

void check_all_to_all(int size, const at::Tensor& out, const at::Tensor& in,
                      const std::vector<std::int64_t>& out_splits, const std::vector<std::int64_t>& in_splits,
                      const OpTag& tag) {
  check_pair("all_to_all", out, in, tag);
  if (in.scalar_type() != at::kByte) refuse("all_to_all", tag, "element type", toString(in.scalar_type()), "Byte");
  check_splits("splits of out", size, out, out_splits, tag);
  check_splits("splits of in", size, in, in_splits, tag);
}

void check_all_gather(int size, const at::Tensor& out, const at::Tensor& in, const OpTag& tag) {
  check_pair("all_gather", out, in, tag);
  check_count("all_gather", tag, "elements of out", out.numel(), size * in.numel());
}

void check_all_reduce(const at::Tensor& tensor, ReduceOp op, const OpTag& tag) {
  check_tensor("all_reduce", tensor, tag);
  check_reducible("all_reduce", tensor, op, tag);
}

void check_reduce_scatter(int size, const at::Tensor& out, const at::Tensor& in, ReduceOp op, const OpTag& tag) {
  check_pair("reduce_scatter", out, in, tag);
  check_reducible("reduce_scatter", in, op, tag);
  check_count("reduce_scatter", tag, "elements of in", in.numel(), size * out.numel());
}

void check_broadcast(int size, const at::Tensor& tensor, int root, const OpTag& tag) {
  check_tensor("broadcast", tensor, tag);
  if (root < 0 || root >= size)
    refuse("broadcast", tag, "root", std::to_string(root), "0 to " + std::to_string(size - 1));
}

void check_point_to_point(int rank, int size, const at::Tensor& tensor, int peer, const char* what, const OpTag& tag) {
  check_tensor("point_to_point", tensor, tag);
  if (peer < 0 || peer >= size || peer == rank)
    refuse("point_to_point", tag, what, std::to_string(peer),
           "another rank, 0 to " + std::to_string(size - 1) + " but not " + std::to_string(rank));
}

}  // namespace thinwire::comm
