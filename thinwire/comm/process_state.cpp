#include "thinwire/comm/process_state.hpp"

#include <sys/resource.h>

#include <csignal>
#include <string>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/sockets.hpp"

namespace thinwire::comm {
namespace {

constexpr int kSpare = 64;  // store, watchdog, and what the program opens while it trains

}  // namespace

void ignore_broken_pipes() {
  struct sigaction current {};
  if (sigaction(SIGPIPE, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

void reserve_descriptors(int groups, int ranks) {
  const auto open = static_cast<rlim_t>(open_descriptors().size());
  const auto needed = open + static_cast<rlim_t>(kSpare + groups * (ranks + 4));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) return;
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed) {
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  fail(ErrorCode::kUnavailable,
       {.place = "comm::reserve_descriptors",
        .what = "limit of open files for " + std::to_string(ranks) + " ranks",
        .got = std::to_string(limit.rlim_max),
        .want = "at least " + std::to_string(needed) + ", since " + std::to_string(open) + " are open already",
        .hint = "ulimit -n " + std::to_string(needed)});
}

}  // namespace thinwire::comm
