// Runs one function per rank, each on a thread of its own; failures of any rank fail the test.
#pragma once

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "thinwire/comm/world.hpp"

namespace thinwire::comm {

// Rethrows the exception of the lowest rank that threw, after all threads have ended.
template <typename Function>
void run_ranks(int size, Function function, std::int64_t timeout_ms = 30'000) {
  auto worlds = make_local_worlds(size, timeout_ms);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      try {
        function(*worlds[index]);
      } catch (...) {
        errors[index] = std::current_exception();
        worlds[index]->hop1().shutdown();
        worlds[index]->hop2().shutdown();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace thinwire::comm
