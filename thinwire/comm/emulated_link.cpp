#include "thinwire/comm/emulated_link.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/traffic.hpp"

namespace thinwire::comm {
namespace {

struct Unit {
  const char* name;
  double factor;
};

// A positive number followed by one of the units.
double parse_quantity(const std::string& text, std::initializer_list<Unit> units, const std::string& whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string suffix(end, text.data() + text.size());
  for (const Unit& unit : units)
    if (error == std::errc() && value > 0 && value < 1e9 && suffix == unit.name) return value * unit.factor;
  fail(ErrorCode::kInvalidArgument, {.place = "comm::parse_link",
                                     .what = "rate of a link",
                                     .got = "\"" + whole + "\"",
                                     .want = "a number with kbit, mbit or gbit, then perhaps a latency",
                                     .hint = "100mbit or 1gbit,0.2ms"});
}

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
  const std::size_t comma = text.find(',');
  LinkSettings settings{.name = text};
  settings.bytes_per_second =
      parse_quantity(text.substr(0, comma), {{"kbit", 125.0}, {"mbit", 125e3}, {"gbit", 125e6}}, text);
  if (comma != std::string::npos)
    settings.latency_s = parse_quantity(text.substr(comma + 1), {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}}, text);
  return settings;
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
