#include "thinwire/train/ddp/comm_thread.hpp"

#include <utility>

namespace thinwire::train {

CommThread::CommThread(Pipeline pipeline) : pipeline_(std::move(pipeline)), thread_([this] { loop(); }) {}

CommThread::~CommThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommThread::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    jobs_.push_back({std::move(job), false});
  }
  changed_.notify_all();
}

void CommThread::run(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) jobs_.push_back({std::move(job), true});
  }
  changed_.notify_all();
  drain();
}

void CommThread::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return idle(); });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CommThread::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    jobs_.clear();
  }
}

void CommThread::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || busy_ || !jobs_.empty(); });
    const int in_flight = failure_ ? 0 : pipeline_.in_flight();
    const bool start = !jobs_.empty() && in_flight < (jobs_.front().alone ? 1 : pipeline_.max_in_flight);
    if (start) {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      busy_ = true;
      lock.unlock();
      guarded(job.work);
      lock.lock();
    } else if (in_flight > 0) {
      lock.unlock();
      guarded(pipeline_.advance);
      lock.lock();
    } else if (jobs_.empty()) {
      busy_ = false;
      changed_.notify_all();
      if (stop_) return;
    }
  }
}

}  // namespace thinwire::train
