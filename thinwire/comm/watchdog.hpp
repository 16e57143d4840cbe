// Every rank's watchdog: a thread that answers what this rank is doing, however long its other threads wait, and
// publishes the same to the store. It judges nobody; diagnosis_judge.hpp does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/comm/probe.hpp"
#include "thinwire/comm/progress.hpp"
#include "thinwire/comm/watchdog_line.hpp"

namespace thinwire::comm {

struct WatchdogSettings {
  int rank = 0;
  std::string host;                   // name of this machine, for messages
  std::string address;                // numeric address of the interface that the groups use; the listener binds to it
  std::int64_t timeout_ms = 300'000;  // T of the groups: pauses of this process are remembered for 2 T
};

// The operation that failed.
struct FailedOperation {
  std::string what;  // "hop 1"
  std::int64_t step = -1;
  int bucket = -1;
};

// Any thread may call anything but meet and the destructor.
class Watchdog {
 public:
  // Listens and beats from here on. `progress` must outlive the watchdog.
  // Throws Error kUnavailable (no socket), kInvalidArgument (address).
  Watchdog(const WatchdogSettings& settings, const Progress& progress);
  // Returns within 1 s, also with a store that hangs. Tells the peers that this rank has ended, and whether an
  // exception ends it, unless an operation of its own has failed.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // One line that tells the other ranks where this one answers: exchange it through the store.
  std::string endpoint() const;

  // `endpoints`: what endpoint() returned, of every rank in rank order, this one included. `open`: a connection to the
  // store that nobody else uses, or null for none. Call once, before the first operation.
  // Throws Error kCorrupt when a line is no endpoint.
  void meet(const std::vector<std::string>& endpoints, OpenBulletin open = nullptr);

  int rank() const;
  std::int64_t timeout_ms() const;
  std::string address() const;
  std::vector<Endpoint> peers() const;  // all but this rank
  StoreLine* store_line();              // null without a store; belongs to the watchdog

  // What this rank would answer now.
  RankState state() const;

  // From here on the rank answers that it waits in this operation, which has failed. The first call counts.
  void mark_failed(const FailedOperation& operation, Failed how);

  // No new connection to the store is opened from here on; the one that is there stays.
  void abandon_store();

  // The diagnosis this rank keeps: the first of those offered by itself and by its peers. Returns the one kept.
  // Abandons the store.
  std::string settle(const std::string& diagnosis);
  std::optional<std::string> settled() const;

  // The last state of a peer that has ended before an operation of its own had failed, if it said so.
  std::optional<RankState> left(int peer) const;

  // Waits until everything that had arrived at the listener before this call has been answered, 0.5 s at most.
  void catch_up();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::comm
