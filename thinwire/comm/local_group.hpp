// Ranks as threads of one process, for tests, for trying out, and for a world of one.
// As on Gloo a send waits for its receive, a wait is bounded by the timeout, and an error kills the group. Beyond Gloo:
// operations that differ between ranks are an Error kMismatch, a timeout names the missing ranks.
// Reduction in rank order: the same bits on every rank and in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

// One group of `size` ranks; element r is for the thread of rank r. Each may outlive the others.
std::vector<std::unique_ptr<Group>> make_local_groups(int size, std::int64_t timeout_ms);

}  // namespace thinwire::comm
