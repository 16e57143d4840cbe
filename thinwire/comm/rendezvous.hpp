// How ranks find each other: on a store, with every check that can fail at start-up done before a group is formed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/env_settings.hpp"
#include "thinwire/comm/rank_card.hpp"
#include "thinwire/comm/store.hpp"

namespace thinwire::comm {

struct RendezvousSettings {
  EnvSettings env;
  std::int64_t timeout_ms = 300'000;
  std::string interface;  // empty: the one that leads to the store's host
};

// The place where the ranks of one job meet. Every failure of one rank, also of later steps, reaches all that have come
// this far: `report` publishes it, `gather` and `join` throw what another rank has published.
class Rendezvous {
 public:
  // Hosts or reaches the store, within the timeout. Throws Error kTimeout, kMismatch.
  explicit Rendezvous(const RendezvousSettings& settings);

  // On a store that is there already; `prefix` is this job's alone.
  Rendezvous(const RendezvousSettings& settings, std::unique_ptr<Store> store, std::string prefix);

  // Checks job, world size, rank, timeouts and addresses; returns everybody's cards when all have arrived. Throws Error
  // kTimeout (names all missing ranks), kMismatch, kUnavailable, kNotFound.
  std::vector<RankCard> join();

  // Publishes `value` under `key` and waits for that of each rank. Throws Error kTimeout (names who has not published).
  std::vector<std::string> gather(const std::string& key, const std::string& value);

  // Tells the others why this rank gives up (the first report of the job counts) and returns that Error. Where this
  // process hosts the store, stays until the others have read it, 2 s at most.
  Error report(const Error& error);

  Store& store() { return *store_; }
  const std::string& prefix() const { return prefix_; }  // of all keys of this job and epoch
  const StoreAddress& address() const { return address_; }
  std::shared_ptr<void> hosted() const { return hosted_; }

 private:
  std::vector<RankCard> join_once();
  void enter_job();  // sets prefix_
  void check_size();
  std::string choose_address() const;
  RankCard make_card() const;
  void claim_rank(const RankCard& card);
  void throw_reported();
  std::vector<std::string> keys(const std::string& name) const;
  void linger(ErrorCode code);
  void acknowledge();
  std::string store_name() const;

  RendezvousSettings settings_;
  Deadline deadline_;
  StoreAddress address_;
  std::shared_ptr<void> hosted_;  // the store, where this rank hosts it
  std::unique_ptr<Store> store_;
  std::string prefix_;
  std::optional<Error> reported_;  // what another rank has published
  int epoch_ = 0;                  // how often this process has met others before
  std::string nonce_;              // of this meeting
  bool duplicate_ = false;         // another process holds this rank and must read reports itself
  std::string me_;                 // "rank 2 (host b, pid 4711)"
};

// The wait for a reply of the store during start-up: longer than any wait while groups form.
std::int64_t reply_timeout_ms(std::int64_t timeout_ms);

}  // namespace thinwire::comm
