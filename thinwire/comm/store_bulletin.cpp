#include <mutex>
#include <utility>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/bulletin.hpp"
#include "thinwire/comm/store.hpp"

namespace thinwire::comm {
namespace {

constexpr std::int64_t kReplyTimeoutMs = 2'000;

class StoreBulletin final : public Bulletin {
 public:
  StoreBulletin(std::unique_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  void publish(const std::string& key, const std::string& value) override {
    guarded([&] { store_->set(prefix_ + key, value); });
  }

  std::vector<std::optional<std::string>> read(const std::vector<std::string>& keys, std::int64_t timeout_ms) override {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(prefix_ + key);
    std::vector<std::optional<std::string>> values;
    guarded([&] {
      store_->limit_waits(timeout_ms);
      values = store_->read(full);
      store_->limit_waits(kReplyTimeoutMs);
    });
    return values;
  }

 private:
  template <typename Call>
  void guarded(Call call) {
    const std::lock_guard lock(mutex_);
    if (broken_)
      fail(ErrorCode::kState, {.place = "comm::Bulletin",
                               .what = "connection used after it had failed",
                               .got = "",
                               .want = "",
                               .hint = "a new one"});
    broken_ = true;
    call();
    broken_ = false;
  }

  std::unique_ptr<Store> store_;
  std::string prefix_;
  std::mutex mutex_;  // guards broken_ and the order of the calls
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<Bulletin> make_cloned_bulletin(Store& store, const std::string& prefix) {
  return std::make_unique<StoreBulletin>(clone_store(store, kReplyTimeoutMs), prefix);
}

std::unique_ptr<Bulletin> make_store_bulletin(const std::string& host, int port, const std::string& prefix,
                                              std::int64_t timeout_ms) {
  return std::make_unique<StoreBulletin>(connect_store({host, port}, timeout_ms, kReplyTimeoutMs), prefix);
}

}  // namespace thinwire::comm
