// A group over a c10d backend: Gloo that we form ourselves, or any backend that somebody hands over.
//
// Gloo loses a peer well (every survivor gets an exception, the process lives) but cannot be told to stop and blames
// innocents: failures go through a FailureHandler, and shutdown() works on the sockets that were noted at formation.
// all_reduce and reduce_scatter run as rings: the order of the sums is that of the ring, the same bits on every rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/comm/failure.hpp"
#include "thinwire/comm/group.hpp"
#include "thinwire/comm/store.hpp"

namespace c10d {
class Backend;
class ProcessGroup;
class Store;
}  // namespace c10d

namespace thinwire::comm {

// Becomes an owner of `backend`. Cannot note sockets: shutdown() only ends later calls, what runs ends by the backend's
// own timeout.
std::unique_ptr<Group> make_c10d_group(c10d::Backend& backend, FailureHandler on_failure);

struct GlooSettings {
  int rank = 0;
  int size = 1;
  std::int64_t timeout_ms = 300'000;        // T; the group is formed within T/5, at least 2 s
  std::string address = "127.0.0.1";        // own address to listen on
  std::string prefix = {};                  // of the keys in the store; a new one for each group
  std::vector<std::string> addresses = {};  // on which the ranks listen, own one included; empty: not known
};

// REQUIRES: all ranks have arrived and call. No other thread of this process opens connections to `addresses` meanwhile
// (they would be taken for the group's, and shut down with it). Throws Error kPeerFailure or kTimeout.
std::unique_ptr<Group> make_gloo_group(Store& store, const GlooSettings& settings, FailureHandler on_failure);

// What a ProcessGroup that somebody hands over offers to groups of our own.
struct Seed {
  int rank = 0;
  int size = 1;
  std::string backend = {};           // of CPU tensors: "gloo", ...
  std::shared_ptr<Store> store = {};  // null: it has none
};
Seed seed_of(c10d::ProcessGroup& group);
std::unique_ptr<Group> make_c10d_group(c10d::ProcessGroup& group, FailureHandler on_failure);

}  // namespace thinwire::comm
