#include "thinwire/comm/c10d_group.hpp"

#include <gloo/transport/device.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "thinwire/comm/arguments.hpp"
#include "thinwire/comm/sockets.hpp"
#include "thinwire/comm/traffic.hpp"

namespace thinwire::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using Splits = std::vector<std::int64_t>;
using NativeWork = c10::intrusive_ptr<c10d::Work>;

// Torch 2.14 renamed three methods of Backend. Templates, so that the name which is not there is never looked up.
template <typename Backend>
NativeWork all_gather_single(Backend& backend, at::Tensor& out, at::Tensor& in) {
  if constexpr (requires { backend.all_gather_single(out, in); })
    return backend.all_gather_single(out, in);
  else
    return backend._allgather_base(out, in);
}

template <typename Backend>
NativeWork all_to_all_single(Backend& backend, Tensors& tensors, Splits& out_splits, Splits& in_splits) {
  if constexpr (requires { backend.all_to_all_single(tensors[0], tensors[1], out_splits, in_splits); })
    return backend.all_to_all_single(tensors[0], tensors[1], out_splits, in_splits);
  else
    return backend.alltoall_base(tensors[0], tensors[1], out_splits, in_splits);
}

template <typename Backend>
NativeWork reduce_scatter_single(Backend& backend, Tensors& tensors, const c10d::ReduceScatterOptions& options) {
  if constexpr (requires { backend.reduce_scatter_single(tensors[0], tensors[1], options); })
    return backend.reduce_scatter_single(tensors[0], tensors[1], options);
  else
    return backend._reduce_scatter_base(tensors[0], tensors[1], options);
}

c10d::ReduceOp native(ReduceOp op) {
  return op == ReduceOp::kSum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
}

// What a group and its work share: whether it is dead, and why. The first failure asks the handler; who fails meanwhile
// waits for its verdict, so that one group says one thing.
class Health {
 public:
  explicit Health(FailureHandler on_failure) : on_failure_(std::move(on_failure)) {}

  // Before every operation. After shut_down the handler is asked, which may know why.
  void throw_if_dead(const OpTag& tag) {
    {
      const std::lock_guard lock(mutex_);
      if (verdict_) throw *verdict_;
    }
    if (shut_down) fail(tag, "this group was shut down before");
  }

  [[noreturn]] void fail(const OpTag& tag, const std::string& text) {
    std::unique_lock lock(mutex_);
    if (std::exchange(failed_, true)) {
      decided_.wait(lock, [&] { return verdict_.has_value(); });
      throw *verdict_;
    }
    lock.unlock();
    const Error verdict = ask_handler(tag, text);
    lock.lock();
    verdict_.emplace(verdict);
    decided_.notify_all();
    throw Error(verdict);
  }

  std::atomic<int> unfinished{0};  // operations that nobody has waited for to the end
  std::atomic<bool> shut_down{false};

 private:
  Error ask_handler(const OpTag& tag, const std::string& text) noexcept {
    try {
      return on_failure_(tag, text);
    } catch (const std::exception& error) {
      return Error(ErrorCode::kPeerFailure, text + " (and the diagnosis failed: " + error.what() + ")");
    }
  }

  FailureHandler on_failure_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable decided_;
  bool failed_ = false;
  std::optional<Error> verdict_;
};

class C10dWork final : public Work {
 public:
  C10dWork(NativeWork work, Tensors tensors, const OpTag& tag, std::shared_ptr<Health> health)
      : work_(std::move(work)), tensors_(std::move(tensors)), tag_(tag), health_(std::move(health)) {
    ++health_->unfinished;
  }

  void wait() override {
    if (!work_) return;
    std::optional<std::string> failure;
    try {
      work_->wait();
    } catch (const std::exception& error) {  // gloo::IoException and EnforceNotMet are no c10::Error
      failure = error.what();
    }
    if (failure) health_->fail(tag_, *failure);
    --health_->unfinished;
    work_.reset();
    tensors_.clear();
  }

 private:
  NativeWork work_;
  Tensors tensors_;  // the backend's own references end before its threads have let go of them in some releases
  OpTag tag_;
  std::shared_ptr<Health> health_;
};

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * tensor.element_size();
}

class C10dGroup final : public Group {
 public:
  C10dGroup(c10::intrusive_ptr<c10d::Backend> backend, std::vector<ConnectedSocket> sockets, FailureHandler on_failure)
      : backend_(std::move(backend)),
        sockets_(std::move(sockets)),
        health_(std::make_shared<Health>(std::move(on_failure))),
        rank_(backend_->getRank()),
        size_(backend_->getSize()) {}

  // The backend's destructor waits for work in flight, which may be for as long as T.
  ~C10dGroup() override {
    if (health_->unfinished > 0) shutdown();
  }
  C10dGroup(const C10dGroup&) = delete;
  C10dGroup& operator=(const C10dGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Handle all_to_all(at::Tensor out, at::Tensor in, Splits out_splits, Splits in_splits, const OpTag& tag) override {
    check_all_to_all(size_, out, in, out_splits, in_splits, tag);
    const std::int64_t sent = all_to_all_traffic(rank_, out_splits, in_splits).sent_bytes;
    Handle handle = start(tag, {std::move(out), std::move(in)}, [&](Tensors& tensors) {
      return all_to_all_single(*backend_, tensors, out_splits, in_splits);
    });
    counters_.all_to_all += sent;
    return handle;
  }

  Handle all_gather(at::Tensor out, at::Tensor in, const OpTag& tag) override {
    check_all_gather(size_, out, in, tag);
    const std::int64_t sent = all_gather_traffic(size_, bytes_of(in)).sent_bytes;
    Handle handle = start(tag, {std::move(out), std::move(in)},
                          [&](Tensors& tensors) { return all_gather_single(*backend_, tensors[0], tensors[1]); });
    counters_.all_gather += sent;
    return handle;
  }

  Handle all_reduce(at::Tensor tensor, ReduceOp op, const OpTag& tag) override {
    check_all_reduce(tensor, op, tag);
    const std::int64_t sent = all_reduce_traffic(size_, tensor.numel(), tensor.element_size()).sent_bytes;
    Handle handle = start(tag, {std::move(tensor)}, [&](Tensors& tensors) {
      c10d::AllreduceOptions options;
      options.reduceOp = native(op);
      return backend_->allreduce(tensors, options);
    });
    counters_.all_reduce += sent;
    return handle;
  }

  Handle reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, const OpTag& tag) override {
    check_reduce_scatter(size_, out, in, op, tag);
    const std::int64_t sent = reduce_scatter_traffic(size_, bytes_of(out)).sent_bytes;
    Handle handle = start(tag, {std::move(out), std::move(in)}, [&](Tensors& tensors) {
      c10d::ReduceScatterOptions options;
      options.reduceOp = native(op);
      return reduce_scatter_single(*backend_, tensors, options);
    });
    counters_.reduce_scatter += sent;
    return handle;
  }

  Handle broadcast(at::Tensor tensor, int root, const OpTag& tag) override {
    check_broadcast(size_, tensor, root, tag);
    const std::int64_t sent = broadcast_traffic(size_, root == rank_, bytes_of(tensor)).sent_bytes;
    Handle handle = start(tag, {std::move(tensor)}, [&](Tensors& tensors) {
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return backend_->broadcast(tensors, options);
    });
    counters_.broadcast += sent;
    return handle;
  }

  Handle send(at::Tensor tensor, int to, const OpTag& tag) override {
    check_point_to_point(rank_, size_, tensor, to, "send to rank", tag);
    const std::int64_t sent = bytes_of(tensor);
    Handle handle =
        start(tag, {std::move(tensor)}, [&](Tensors& tensors) { return backend_->send(tensors, to, kMessageTag); });
    counters_.send += sent;
    return handle;
  }

  Handle recv(at::Tensor tensor, int from, const OpTag& tag) override {
    check_point_to_point(rank_, size_, tensor, from, "recv from rank", tag);
    return start(tag, {std::move(tensor)},
                 [&](Tensors& tensors) { return backend_->recv(tensors, from, kMessageTag); });
  }

  Handle barrier(const OpTag& tag) override {
    return start(tag, {}, [&](Tensors&) { return backend_->barrier(); });
  }

  void shutdown() noexcept override {
    health_->shut_down = true;
    shutdown_sockets(sockets_);
  }

  const Counters& counters() const override { return counters_; }
  std::string description() const override { return backend_->getBackendName(); }

 private:
  static constexpr int kMessageTag = 0;  // messages between two ranks are matched by their order

  template <typename Call>
  Handle start(const OpTag& tag, Tensors tensors, Call call) {
    health_->throw_if_dead(tag);
    for (at::Tensor& tensor : tensors)
      tensor = tensor.detach().view(-1);  // backends insist on shapes; we count elements
    NativeWork work;
    std::optional<std::string> failure;
    try {
      work = call(tensors);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure) health_->fail(tag, *failure);
    return std::make_unique<C10dWork>(std::move(work), std::move(tensors), tag, health_);
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  const std::vector<ConnectedSocket> sockets_;
  std::shared_ptr<Health> health_;
  const int rank_;
  const int size_;
  Counters counters_;
};

// The connections among `opened` that lead to a rank. Where fewer do than a group has (something between the hosts
// translates addresses) all of them: better a stranger's connection that ends with the group than waits that nobody can
// end.
std::vector<ConnectedSocket> sockets_of_group(const std::vector<ConnectedSocket>& opened,
                                              const GlooSettings& settings) {
  std::set<std::string> ranks;
  for (const std::string& address : settings.addresses) ranks.insert(address.substr(0, address.find('%')));
  std::vector<ConnectedSocket> ours;
  for (const ConnectedSocket& socket : opened)
    if (ranks.contains(socket.peer_address)) ours.push_back(socket);
  return ours.size() + 1 < static_cast<std::size_t>(settings.size) ? opened : ours;
}

[[noreturn]] void fail_to_form(const GlooSettings& settings, std::int64_t limit_ms, const std::string& text) {
  fail(ErrorCode::kPeerFailure, {.place = "comm::make_gloo_group",
                                 .what = "rank " + std::to_string(settings.rank) + " of " +
                                         std::to_string(settings.size) + " could not connect to all others within " +
                                         std::to_string(limit_ms) + " ms over address " + settings.address,
                                 .got = text.substr(0, text.find('\n')),
                                 .want = "",
                                 .hint = "an interface that all hosts can reach (GLOO_SOCKET_IFNAME)"});
}

}  // namespace

std::unique_ptr<Group> make_c10d_group(c10d::Backend& backend, FailureHandler on_failure) {
  auto owned = c10::intrusive_ptr<c10d::Backend>::unsafe_reclaim_from_nonowning(&backend);
  return std::make_unique<C10dGroup>(std::move(owned), std::vector<ConnectedSocket>{}, std::move(on_failure));
}

std::unique_ptr<Group> make_gloo_group(Store& store, const GlooSettings& settings, FailureHandler on_failure) {
  // A rank that waits for an incoming connection waits for five timeouts.
  const std::int64_t form_ms = std::max<std::int64_t>(settings.timeout_ms / 5, 2'000);
  const std::set<int> before = open_descriptors();
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::milliseconds(form_ms));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(settings.address));
    const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(
        settings.prefix, c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store.native()));
    gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, settings.rank, settings.size, options);
    gloo->setTimeout(std::chrono::milliseconds(settings.timeout_ms));
  } catch (const std::exception& error) {
    fail_to_form(settings, form_ms, error.what());
  }
  std::vector<ConnectedSocket> sockets = sockets_of_group(connected_since(before), settings);
  close_on_exec(sockets);  // Gloo does not
  return std::make_unique<C10dGroup>(std::move(gloo), std::move(sockets), std::move(on_failure));
}

namespace {

c10::intrusive_ptr<c10d::Backend> backend_of(c10d::ProcessGroup& group) {
  return group.hasBackendForDeviceType(c10::DeviceType::CPU) ? group.getBackend(c10::DeviceType::CPU)
                                                             : group.getDefaultBackend();
}

}  // namespace

Seed seed_of(c10d::ProcessGroup& group) {
  const auto store = group.getStore();
  return {.rank = group.getRank(),
          .size = group.getSize(),
          .backend = backend_of(group)->getBackendName(),
          .store = store ? wrap_store(*store) : nullptr};
}

std::unique_ptr<Group> make_c10d_group(c10d::ProcessGroup& group, FailureHandler on_failure) {
  return make_c10d_group(*backend_of(group), std::move(on_failure));
}

}  // namespace thinwire::comm
