#include "thinwire/comm/watchdog.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/probe_listener.hpp"

namespace thinwire::comm {
namespace {

constexpr int kBeat_ms = 100;
constexpr std::int64_t kFarewell_ms = 200;

std::string key_of(int rank) {
  return "beat/" + std::to_string(rank);
}

FileDescriptor wake_descriptor() {
  FileDescriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid())
    fail(ErrorCode::kUnavailable, {.place = "comm::watchdog",
                                   .what = "cannot make an event descriptor",
                                   .got = "",
                                   .want = "",
                                   .hint = "raising the limit of open files (ulimit -n)"});
  return fd;
}

}  // namespace

struct Watchdog::Impl {
  Impl(const WatchdogSettings& given, const Progress& progress_of_rank)
      : settings(given),
        progress(progress_of_rank),
        wake(wake_descriptor()),
        listener(given.address, [this](const Request& request) { return answer(request); }),
        thread([this] { run(); }) {}

  ~Impl() {
    stopping = true;
    wake_up();
    thread.join();
  }

  void wake_up() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof one);
  }

  void run() {
    while (!stopping) {
      listener.serve(kBeat_ms, wake.get());
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t drained = ::read(wake.get(), &count, sizeof count);
      const double now_s = monotonic_seconds();
      note_gap(now_s - last_beat_s, now_s);
      last_beat_s = now_s;
      const std::lock_guard lock(mutex);
      ++beat;
      beaten.notify_all();
    }
  }

  // Keeps the longest pause of the last 2 T.
  void note_gap(double gap_s, double now_s) {
    const auto ms = static_cast<std::int64_t>(gap_s * 1e3);
    const std::lock_guard lock(mutex);
    if (failed_state && ms < settings.timeout_ms / 2) return;
    const bool old = now_s - gap_at_s > 2e-3 * static_cast<double>(settings.timeout_ms);
    if (ms < gap_ms && !old) return;
    gap_ms = ms;
    gap_at_s = now_s;
  }

  std::string answer(const Request& request) {
    if (request.kind == RequestKind::kState) return to_line(state());
    if (request.kind == RequestKind::kSettle) return settle(request.text);
    const std::optional<RankState> last = parse_rank_state(request.text);
    const std::lock_guard lock(mutex);
    if (last && last->rank == request.from) left.try_emplace(last->rank, *last);
    return "";
  }

  RankState state() const {
    const std::lock_guard lock(mutex);
    RankState now = failed_state.value_or(RankState{});
    if (!failed_state) {
      now.rank = settings.rank;
      now.pid = ::getpid();
      now.host = settings.host;
      now.step = progress.step.load();
      now.bucket = progress.bucket.load();
      now.hop = progress.hop.load();
      now.phase = progress.phase.load();
    }
    now.beat = beat;
    // After a stop another thread may come to ask before the beating one has noticed.
    now.gap_ms = std::max(gap_ms, static_cast<std::int64_t>((monotonic_seconds() - last_beat_s) * 1e3));
    return now;
  }

  std::string settle(const std::string& diagnosis) {
    *store_abandoned = true;
    const std::lock_guard lock(mutex);
    if (!settled) settled = diagnosis;
    return *settled;
  }

  const WatchdogSettings settings;
  const int exceptions_before = std::uncaught_exceptions();  // under way when the watchdog was made
  const Progress& progress;
  std::vector<Endpoint> peers;  // written by meet only
  // Shared with the line's thread, which may outlive this. Once the job has failed its store may be gone as well, and
  // trying to reach it again would only leave threads behind.
  const std::shared_ptr<std::atomic<bool>> store_abandoned = std::make_shared<std::atomic<bool>>(false);

  mutable std::mutex mutex;  // guards what follows, up to the blank line
  std::condition_variable beaten;
  std::int64_t beat = 0;
  std::int64_t gap_ms = 0;
  double gap_at_s = 0;
  std::optional<RankState> failed_state;
  std::optional<std::string> settled;
  std::map<int, RankState> left;

  std::atomic<bool> stopping{false};
  std::atomic<double> last_beat_s{monotonic_seconds()};
  FileDescriptor wake;
  ProbeListener listener;
  std::thread thread;
  std::unique_ptr<StoreLine> line;  // goes first: it asks for the state
};

Watchdog::Watchdog(const WatchdogSettings& settings, const Progress& progress)
    : impl_(std::make_unique<Impl>(settings, progress)) {}

Watchdog::~Watchdog() {
  RankState last = impl_->state();
  if (last.failed != Failed::kNo) return;
  if (std::uncaught_exceptions() > impl_->exceptions_before) last.failed = Failed::kException;
  try {
    ask(impl_->peers, {RequestKind::kLeave, impl_->settings.rank, to_line(last)}, kFarewell_ms);
  } catch (const Error&) {
    // Peers then see a refused connection, which is true as well.
  }
}

std::string Watchdog::endpoint() const {
  const WatchdogSettings& settings = impl_->settings;
  return to_line(Endpoint{settings.rank, settings.address, impl_->listener.port(), impl_->listener.nonce(),
                          static_cast<std::int64_t>(::getpid()), settings.host});
}

void Watchdog::meet(const std::vector<std::string>& endpoints, OpenBulletin open) {
  std::vector<std::string> peer_keys;
  for (const std::string& line : endpoints) {
    const std::optional<Endpoint> endpoint = parse_endpoint(line);
    if (!endpoint)
      fail(ErrorCode::kCorrupt, {.place = "comm::watchdog",
                                 .what = "endpoint of a rank",
                                 .got = "'" + line + "'",
                                 .want = "what Watchdog::endpoint() returns",
                                 .hint = "the same version of thinwire on every rank"});
    if (endpoint->rank == impl_->settings.rank) continue;
    impl_->peers.push_back(*endpoint);
    peer_keys.push_back(key_of(endpoint->rank));
  }
  if (!open) return;
  OpenBulletin open_while_well = [open = std::move(open), abandoned = impl_->store_abandoned] {
    if (*abandoned)
      fail(ErrorCode::kState,
           {.place = "comm::watchdog", .what = "the job has failed", .got = "", .want = "", .hint = ""});
    return open();
  };
  impl_->line =
      std::make_unique<StoreLine>(std::move(open_while_well), key_of(impl_->settings.rank), std::move(peer_keys),
                                  [impl = impl_.get()] { return to_line(impl->state()); });
}

int Watchdog::rank() const {
  return impl_->settings.rank;
}
std::int64_t Watchdog::timeout_ms() const {
  return impl_->settings.timeout_ms;
}
std::string Watchdog::address() const {
  return impl_->settings.address;
}
std::vector<Endpoint> Watchdog::peers() const {
  return impl_->peers;
}
StoreLine* Watchdog::store_line() {
  return impl_->line.get();
}
RankState Watchdog::state() const {
  return impl_->state();
}
std::string Watchdog::settle(const std::string& diagnosis) {
  return impl_->settle(diagnosis);
}

void Watchdog::mark_failed(const FailedOperation& operation, Failed how) {
  RankState now = impl_->state();
  const std::lock_guard lock(impl_->mutex);
  if (impl_->failed_state) return;
  now.step = operation.step >= 0 ? operation.step : now.step;
  now.bucket = operation.bucket;
  now.phase = Phase::kWaiting;
  now.operation = operation.what;
  now.failed = how;
  impl_->failed_state = std::move(now);
}

void Watchdog::abandon_store() {
  *impl_->store_abandoned = true;
}

std::optional<std::string> Watchdog::settled() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->settled;
}

std::optional<RankState> Watchdog::left(int peer) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->left.find(peer);
  return found == impl_->left.end() ? std::nullopt : std::optional(found->second);
}

void Watchdog::catch_up() {
  std::unique_lock lock(impl_->mutex);
  // The round under way may have polled already: the one after it surely has not.
  const std::int64_t enough = impl_->beat + 2;
  impl_->beaten.wait_for(lock, std::chrono::milliseconds(500), [&] { return impl_->beat >= enough; });
}

}  // namespace thinwire::comm
