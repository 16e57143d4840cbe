#include "thinwire/comm/local_hub.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "thinwire/comm/failure.hpp"

namespace thinwire::comm {
namespace {

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string describe(const LocalRequest& request) {
  return request.shape + " (" + to_string(request.tag) + ")";
}

bool same_operation(const LocalRequest& a, const LocalRequest& b) {
  return a.op == b.op && a.shape == b.shape && std::string_view(a.tag.what) == b.tag.what && a.tag.step == b.tag.step &&
         a.tag.bucket == b.tag.bucket;
}

// Empty when the requests that are there fit together.
std::string find_mismatch(const LocalMeeting& meeting, int rank) {
  const LocalRequest& mine = *meeting.requests[static_cast<std::size_t>(rank)];
  for (const int other : meeting.participants) {
    const auto& theirs = meeting.requests[static_cast<std::size_t>(other)];
    if (!theirs || other == rank) continue;
    const auto me = static_cast<std::size_t>(rank), them = static_cast<std::size_t>(other);
    std::string text = "rank " + std::to_string(rank) + " started " + describe(mine) + ", rank " +
                       std::to_string(other) + " started " + describe(*theirs);
    if (!same_operation(mine, *theirs)) return text;
    if (mine.op != LocalOp::kAllToAll) continue;
    if (mine.in_splits[them] != theirs->out_splits[me])
      return text + "; rank " + std::to_string(rank) + " sends " + std::to_string(mine.in_splits[them]) +
             " bytes, rank " + std::to_string(other) + " expects " + std::to_string(theirs->out_splits[me]);
    if (theirs->in_splits[me] != mine.out_splits[them])
      return text + "; rank " + std::to_string(other) + " sends " + std::to_string(theirs->in_splits[me]) +
             " bytes, rank " + std::to_string(rank) + " expects " + std::to_string(mine.out_splits[them]);
  }
  return "";
}

}  // namespace

std::vector<int> LocalMeeting::missing() const {
  std::vector<int> ranks;
  for (const int rank : participants)
    if (!requests[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  return ranks;
}

LocalHub::LocalHub(int size, std::int64_t timeout_ms)
    : size_(size), timeout_ms_(timeout_ms), departed_(static_cast<std::size_t>(size), false) {}

std::shared_ptr<LocalMeeting> LocalHub::join(int rank, LocalRequest request) {
  std::vector<int> everyone(static_cast<std::size_t>(size_));
  std::iota(everyone.begin(), everyone.end(), 0);
  const std::lock_guard lock(mutex_);
  const Key key{-1, -1, next_[Key{-1, -1, rank}]++};
  return meet(rank, key, everyone, std::move(request));
}

std::shared_ptr<LocalMeeting> LocalHub::join_message(int rank, int from, int to, LocalRequest request) {
  const std::lock_guard lock(mutex_);
  const Key key{from, to, next_[Key{from, to, rank}]++};
  return meet(rank, key, {from, to}, std::move(request));
}

std::shared_ptr<LocalMeeting> LocalHub::meet(int rank, const Key& key, const std::vector<int>& participants,
                                             LocalRequest request) {
  throw_if_dead();
  auto& slot = open_[key];
  if (!slot) {
    slot = std::make_shared<LocalMeeting>();
    slot->participants = participants;
    slot->requests.resize(static_cast<std::size_t>(size_));
  }
  const std::shared_ptr<LocalMeeting> meeting = slot;
  meeting->requests[static_cast<std::size_t>(rank)] = std::move(request);
  if (const std::string mismatch = find_mismatch(*meeting, rank); !mismatch.empty()) {
    kill_locked(ErrorCode::kMismatch, "[comm::local] operations differ; got " + mismatch +
                                          ", want the same on all ranks; try the same order of calls everywhere");
    return meeting;
  }
  check_departed(*meeting);
  if (dead_ || !meeting->missing().empty()) return meeting;
  run_local_operation(*meeting);
  meeting->done = true;
  meeting->requests.assign(meeting->requests.size(), std::nullopt);  // releases the tensors
  open_.erase(key);
  changed_.notify_all();
  return meeting;
}

void LocalHub::check_departed(const LocalMeeting& meeting) {
  std::vector<int> gone;
  for (const int rank : meeting.missing())
    if (departed_[static_cast<std::size_t>(rank)]) gone.push_back(rank);
  if (!gone.empty())
    kill_locked(ErrorCode::kPeerFailure, "[comm::local] " + rank_list(gone) + " has left the group while others wait");
}

void LocalHub::wait(LocalMeeting& meeting, const OpTag& tag) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return meeting.done || dead_.has_value(); };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms_), over))
    kill_locked(ErrorCode::kTimeout, "[comm::local] " + to_string(tag) + "; got no call of " +
                                         rank_list(meeting.missing()) + " in " + std::to_string(timeout_ms_) + " ms");
  if (!meeting.done) throw_if_dead();
}

void LocalHub::kill(ErrorCode code, const std::string& message) {
  const std::lock_guard lock(mutex_);
  kill_locked(code, message);
}

void LocalHub::leave(int rank) {
  const std::lock_guard lock(mutex_);
  departed_[static_cast<std::size_t>(rank)] = true;
  const auto open = open_;  // killing the group clears it
  for (const auto& [key, meeting] : open) check_departed(*meeting);
}

void LocalHub::kill_locked(ErrorCode code, const std::string& message) {
  if (dead_) return;
  dead_.emplace(code, message);
  open_.clear();
  changed_.notify_all();
}

void LocalHub::throw_if_dead() const {
  if (dead_) throw *dead_;
}

}  // namespace thinwire::comm
