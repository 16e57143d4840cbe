// n ranks as threads of the test's process, each with a world of its own; exceptions come out of `on_ranks`.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "thinwire/comm/world.hpp"

namespace thinwire::train {

// Runs `body(world)` on every rank and rethrows the exception of the lowest rank that threw.
inline void on_ranks(int ranks, const std::function<void(comm::World&)>& body, std::int64_t timeout_ms = 30'000) {
  const std::vector<std::unique_ptr<comm::World>> worlds = comm::make_local_worlds(ranks, timeout_ms);
  std::vector<std::exception_ptr> thrown(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*worlds[rank]);
      } catch (...) {
        thrown[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace thinwire::train
