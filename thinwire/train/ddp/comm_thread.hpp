// The one thread of a process that issues collectives. Jobs run in the order in which they are posted; between jobs the
// thread moves on what is in flight.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace thinwire::train {

class CommThread {
 public:
  // `in_flight` (how many exchanges have been started and not ended) and `advance` (ends one more step of the oldest)
  // are called on the thread. A job waits while `max_in_flight` exchanges are under way.
  struct Pipeline {
    std::function<int()> in_flight;
    std::function<void()> advance;
    int max_in_flight = 1;
  };
  explicit CommThread(Pipeline pipeline);
  // Finishes the jobs that were posted.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // After a job or `advance` has thrown, later jobs are dropped until `drain` has reported the exception.
  void post(std::function<void()> job);
  // Posts a job that starts when nothing is in flight, waits for it, and rethrows what it or an earlier job threw.
  void run(std::function<void()> job);
  // Waits until all jobs have run and nothing is in flight; rethrows the first exception since the last call.
  void drain();

 private:
  struct Job {
    std::function<void()> work;
    bool alone = false;  // starts only when nothing is in flight
  };
  void loop();
  void guarded(const std::function<void()>& work);
  bool idle() const { return jobs_.empty() && !busy_; }

  Pipeline pipeline_;
  std::mutex mutex_;  // guards the five below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::exception_ptr failure_;
  bool busy_ = false;  // a job runs or something is in flight
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace thinwire::train
