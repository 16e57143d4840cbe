#include "thinwire/comm/local_group.hpp"

#include <string>
#include <utility>

#include "thinwire/comm/arguments.hpp"
#include "thinwire/comm/local_hub.hpp"
#include "thinwire/comm/traffic.hpp"

namespace thinwire::comm {
namespace {

class LocalWork final : public Work {
 public:
  LocalWork(std::shared_ptr<LocalHub> hub, std::shared_ptr<LocalMeeting> meeting, const OpTag& tag)
      : hub_(std::move(hub)), meeting_(std::move(meeting)), tag_(tag) {}
  void wait() override { hub_->wait(*meeting_, tag_); }

 private:
  std::shared_ptr<LocalHub> hub_;
  std::shared_ptr<LocalMeeting> meeting_;
  OpTag tag_;
};

std::string shape_of(const char* operation, const at::Tensor& tensor) {
  return std::string(operation) + " of " + std::to_string(tensor.numel()) + " x " + toString(tensor.scalar_type());
}

const char* name_of(ReduceOp op) {
  return op == ReduceOp::kSum ? "sum" : "max";
}

class LocalGroup final : public Group {
 public:
  LocalGroup(std::shared_ptr<LocalHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~LocalGroup() override { hub_->leave(rank_); }
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  Handle all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> out_splits,
                    std::vector<std::int64_t> in_splits, const OpTag& tag) override {
    check_all_to_all(size(), out, in, out_splits, in_splits, tag);
    const std::int64_t sent = all_to_all_traffic(rank_, out_splits, in_splits).sent_bytes;
    Handle handle = start({.op = LocalOp::kAllToAll,
                           .tag = tag,
                           .shape = "all_to_all",
                           .out = std::move(out),
                           .in = std::move(in),
                           .out_splits = std::move(out_splits),
                           .in_splits = std::move(in_splits)});
    counters_.all_to_all += sent;
    return handle;
  }

  Handle all_gather(at::Tensor out, at::Tensor in, const OpTag& tag) override {
    check_all_gather(size(), out, in, tag);
    const std::int64_t sent = all_gather_traffic(size(), in.numel() * in.element_size()).sent_bytes;
    std::string shape = shape_of("all_gather", in);
    Handle handle = start(
        {.op = LocalOp::kAllGather, .tag = tag, .shape = std::move(shape), .out = std::move(out), .in = std::move(in)});
    counters_.all_gather += sent;
    return handle;
  }

  Handle all_reduce(at::Tensor tensor, ReduceOp op, const OpTag& tag) override {
    check_all_reduce(tensor, op, tag);
    const std::int64_t sent = all_reduce_traffic(size(), tensor.numel(), tensor.element_size()).sent_bytes;
    std::string shape = shape_of("all_reduce", tensor) + " " + name_of(op);
    Handle handle = start(
        {.op = LocalOp::kAllReduce, .tag = tag, .shape = std::move(shape), .out = std::move(tensor), .reduce = op});
    counters_.all_reduce += sent;
    return handle;
  }

  Handle reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, const OpTag& tag) override {
    check_reduce_scatter(size(), out, in, op, tag);
    const std::int64_t sent = reduce_scatter_traffic(size(), out.numel() * out.element_size()).sent_bytes;
    std::string shape = shape_of("reduce_scatter", in) + " " + name_of(op);
    Handle handle = start({.op = LocalOp::kReduceScatter,
                           .tag = tag,
                           .shape = std::move(shape),
                           .out = std::move(out),
                           .in = std::move(in),
                           .reduce = op});
    counters_.reduce_scatter += sent;
    return handle;
  }

  Handle broadcast(at::Tensor tensor, int root, const OpTag& tag) override {
    check_broadcast(size(), tensor, root, tag);
    const std::int64_t sent =
        broadcast_traffic(size(), root == rank_, tensor.numel() * tensor.element_size()).sent_bytes;
    std::string shape = shape_of("broadcast", tensor) + " from rank " + std::to_string(root);
    Handle handle = start(
        {.op = LocalOp::kBroadcast, .tag = tag, .shape = std::move(shape), .out = std::move(tensor), .root = root});
    counters_.broadcast += sent;
    return handle;
  }

  Handle send(at::Tensor tensor, int to, const OpTag& tag) override {
    check_point_to_point(rank_, size(), tensor, to, "send to rank", tag);
    const std::int64_t sent = tensor.numel() * tensor.element_size();
    Handle handle = start_message(std::move(tensor), rank_, to, tag);
    counters_.send += sent;
    return handle;
  }

  Handle recv(at::Tensor tensor, int from, const OpTag& tag) override {
    check_point_to_point(rank_, size(), tensor, from, "recv from rank", tag);
    return start_message(std::move(tensor), from, rank_, tag);
  }

  Handle barrier(const OpTag& tag) override { return start({.op = LocalOp::kBarrier, .tag = tag, .shape = "barrier"}); }

  void shutdown() noexcept override {
    try {
      hub_->kill(ErrorCode::kPeerFailure, "[comm::local] rank " + std::to_string(rank_) + " has shut the group down");
    } catch (...) {  // out of memory: the waiters keep their timeout
    }
  }

  const Counters& counters() const override { return counters_; }
  std::string description() const override { return "local"; }

 private:
  Handle start(LocalRequest request) {
    const OpTag tag = request.tag;
    return std::make_unique<LocalWork>(hub_, hub_->join(rank_, std::move(request)), tag);
  }

  Handle start_message(at::Tensor tensor, int from, int to, const OpTag& tag) {
    std::string shape = shape_of("message", tensor);
    LocalRequest request{
        .op = LocalOp::kPointToPoint, .tag = tag, .shape = std::move(shape), .out = std::move(tensor), .root = from};
    return std::make_unique<LocalWork>(hub_, hub_->join_message(rank_, from, to, std::move(request)), tag);
  }

  std::shared_ptr<LocalHub> hub_;
  const int rank_;
  Counters counters_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> make_local_groups(int size, std::int64_t timeout_ms) {
  if (size < 1)
    fail(ErrorCode::kInvalidArgument, {.place = "comm::make_local_groups",
                                       .what = "number of ranks",
                                       .got = std::to_string(size),
                                       .want = "at least 1",
                                       .hint = ""});
  const auto hub = std::make_shared<LocalHub>(size, timeout_ms);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank) groups.push_back(std::make_unique<LocalGroup>(hub, rank));
  return groups;
}

}  // namespace thinwire::comm
