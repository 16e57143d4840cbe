// Everything one rank needs to talk to the others: two groups (one per hop), its place, progress that peers can see.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/comm/group.hpp"
#include "thinwire/comm/progress.hpp"

namespace thinwire::comm {

struct InitSettings {
  std::int64_t timeout_ms = 300'000;  // T: how long a silent peer is waited for; THINWIRE_TIMEOUT_S overrides; raise it
                                      // for checkpoints to slow disks, lower it to notice stopped hosts sooner
  std::string interface = {};         // network interface for Gloo; empty: GLOO_SOCKET_IFNAME, else found by itself
  std::string link = {};  // "100mbit": emulate a link of that rate; empty: THINWIRE_EMULATED_LINK; "none": no link
};

// Two groups over the same ranks, since each hop runs strictly in bucket order and neither waits for the other.
class World {
 public:
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;

  virtual Group& hop1() = 0;
  virtual Group& hop2() = 0;

  // What this rank is doing; the communication thread and the trainer write it, the watchdog publishes it.
  virtual Progress& progress() = 0;

  // True when a link of limited speed is emulated: what is timed here is no network.
  virtual bool emulated() const = 0;

  // One user at a time may issue collectives between claim and release (train::Reducer, for a step): two would do so
  // in an order of their own on each rank. Any thread.
  bool is_free_for(const void* user) const {
    const void* holder = user_;
    return holder == nullptr || holder == user;
  }
  void claim(const void* user) { user_ = user; }                                    // REQUIRES: is_free_for(user)
  void release(const void* user) { user_.compare_exchange_strong(user, nullptr); }  // nothing when another holds it

 private:
  std::atomic<const void*> user_{nullptr};
};

// Reads rank, world size and address from the environment (torchrun, thinwire run, mpirun, srun; docs/cluster.md says
// which variable wins), meets the other ranks, forms the groups. With no such variable: a world of one.
// REQUIRES: until it returns no other thread opens connections to hosts of the job. They cannot be told from those of
// the groups, which are shut down when a rank fails.
// Throws Error: kInvalidArgument (variables that contradict each other), kTimeout (names every missing rank),
// kMismatch (rank given twice, world sizes or timeouts that differ, another job on this port, loopback between hosts),
// kUnavailable (file descriptors).
std::unique_ptr<World> init_from_env(const InitSettings& settings = {});

// n worlds whose ranks are threads of this process, for tests and for trying out. `timeout_ms` bounds every wait.
std::vector<std::unique_ptr<World>> make_local_worlds(int size, std::int64_t timeout_ms = 30'000);

}  // namespace thinwire::comm
