#include "thinwire/comm/emulated_link.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/parse.hpp"
#include "thinwire/comm/traffic.hpp"

namespace thinwire::comm {
namespace {

class EmulatedWork final : public Work {
 public:
  EmulatedWork(Handle inner, double ready_at_s) : inner_(std::move(inner)), ready_at_s_(ready_at_s) {}
  void wait() override {
    inner_->wait();
    const double left_s = ready_at_s_ - monotonic_seconds();
    if (left_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left_s));
  }

 private:
  Handle inner_;
  double ready_at_s_;
};

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * tensor.element_size();
}

class EmulatedGroup final : public Group {
 public:
  EmulatedGroup(std::unique_ptr<Group> inner, std::shared_ptr<EmulatedLink> link)
      : inner_(std::move(inner)), link_(std::move(link)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  Handle all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> out_splits,
                    std::vector<std::int64_t> in_splits, const OpTag& tag) override {
    Handle handle = inner_->all_to_all(std::move(out), std::move(in), out_splits, in_splits, tag);
    return slow(std::move(handle), all_to_all_traffic(rank(), out_splits, in_splits));
  }
  Handle all_gather(at::Tensor out, at::Tensor in, const OpTag& tag) override {
    const std::int64_t bytes = bytes_of(in);
    return slow(inner_->all_gather(std::move(out), std::move(in), tag), all_gather_traffic(size(), bytes));
  }
  Handle all_reduce(at::Tensor tensor, ReduceOp op, const OpTag& tag) override {
    Handle handle = inner_->all_reduce(tensor, op, tag);
    return slow(std::move(handle), all_reduce_traffic(size(), tensor.numel(), tensor.element_size()));
  }
  Handle reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, const OpTag& tag) override {
    Handle handle = inner_->reduce_scatter(out, std::move(in), op, tag);
    return slow(std::move(handle), reduce_scatter_traffic(size(), bytes_of(out)));
  }
  Handle broadcast(at::Tensor tensor, int root, const OpTag& tag) override {
    Handle handle = inner_->broadcast(tensor, root, tag);
    return slow(std::move(handle), broadcast_traffic(size(), root == rank(), bytes_of(tensor)));
  }
  Handle send(at::Tensor tensor, int to, const OpTag& tag) override {
    Handle handle = inner_->send(tensor, to, tag);
    return slow(std::move(handle), {bytes_of(tensor), 0, 1});
  }
  Handle recv(at::Tensor tensor, int from, const OpTag& tag) override {
    Handle handle = inner_->recv(tensor, from, tag);
    return slow(std::move(handle), {0, bytes_of(tensor), 1});
  }
  Handle barrier(const OpTag& tag) override { return slow(inner_->barrier(tag), {0, 0, size() > 1 ? 1 : 0}); }

  void shutdown() noexcept override { inner_->shutdown(); }
  const Counters& counters() const override { return inner_->counters(); }
  std::string description() const override {
    return inner_->description() + " + emulated link of " + link_->settings().name;
  }

 private:
  Handle slow(Handle handle, const Traffic& traffic) {
    const std::int64_t bytes = std::max(traffic.sent_bytes, traffic.received_bytes);
    return std::make_unique<EmulatedWork>(std::move(handle), link_->occupy(bytes, traffic.messages));
  }

  std::unique_ptr<Group> inner_;
  std::shared_ptr<EmulatedLink> link_;
};

}  // namespace

LinkSettings parse_link(const std::string& text) {
  const LinkSpeed speed = parse_link_speed(text);
  return {.bytes_per_second = speed.bytes_per_second.value_or(std::numeric_limits<double>::infinity()),
          .latency_s = speed.latency_s,
          .name = text};
}

double EmulatedLink::occupy(std::int64_t bytes, int messages) {
  const double duration_s = messages * settings_.latency_s + static_cast<double>(bytes) / settings_.bytes_per_second;
  const std::lock_guard lock(mutex_);
  free_at_s_ = std::max(free_at_s_, monotonic_seconds()) + duration_s;
  return free_at_s_;
}

std::unique_ptr<Group> make_emulated_group(std::unique_ptr<Group> inner, std::shared_ptr<EmulatedLink> link) {
  return std::make_unique<EmulatedGroup>(std::move(inner), std::move(link));
}

}  // namespace thinwire::comm
