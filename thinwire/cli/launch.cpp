#include "thinwire/cli/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/env.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/cli/launch_scope.hpp"
#include "thinwire/cli/line_splitter.hpp"
#include "thinwire/cli/rank_environment.hpp"

namespace thinwire::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kGraceS = 2;             // between the first end of a survivor (or SIGTERM) and SIGKILL
constexpr double kAfterTimeoutS = 5;      // survivors that wait for a silent peer need their timeout and a little
constexpr double kDefaultTimeoutS = 300;  // as comm::InitSettings
constexpr double kDrainS = 1;             // for output still in the pipes when every process is dead

struct Stream {
  int rank;
  bool standard_error;
  FileDescriptor fd;
  LineSplitter lines;
};

std::string seconds(double s) {
  std::string text = std::to_string(s);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

double group_timeout_s(const LaunchSettings& settings) {
  if (settings.timeout_s > 0) return settings.timeout_s;
  std::string text = env_text("THINWIRE_TIMEOUT_S").value_or("");
  for (const auto& [name, value] : settings.environment)
    if (name == "THINWIRE_TIMEOUT_S") text = value;
  const double timeout_s = std::strtod(text.c_str(), nullptr);
  return timeout_s > 0 ? timeout_s : kDefaultTimeoutS;
}

class Launcher {
 public:
  explicit Launcher(const LaunchSettings& settings)
      : settings_(settings), scope_(settings.ranks, settings.link, settings.link_mode) {}

  LaunchOutcome run() {
    open_logs();
    start_all();
    if (settings_.events.on_started) settings_.events.on_started(pids(), scope_.link);
    while (running_ > 0) {
      wait_for_events(kill_at_s_);
      for (int signal_number : scope_.signals.arrived())
        if (signal_number != SIGCHLD) interrupt(signal_number);
      reap();
      if (monotonic_seconds() >= kill_at_s_) kill_the_rest();
    }
    scope_.processes.kill_leftovers();
    drain();
    outcome_.wall_s = monotonic_seconds() - began_s_;
    return std::move(outcome_);
  }

 private:
  void notice(const std::string& text) const {
    if (settings_.events.on_notice) settings_.events.on_notice(text);
  }

  std::vector<pid_t> pids() const {
    std::vector<pid_t> all;
    for (const RankOutcome& rank : outcome_.ranks) all.push_back(rank.pid);
    return all;
  }

  void open_logs() {
    if (settings_.log_dir.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(settings_.log_dir, error);
    for (int rank = 0; rank < settings_.ranks; ++rank) {
      const std::string path = settings_.log_dir + "/rank" + std::to_string(rank) + ".log";
      logs_.emplace_back(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!logs_.back().valid())
        fail(ErrorCode::kIo, {"cli::run_ranks", "cannot write " + path, std::strerror(errno), "", ""});
    }
  }

  void start_all() {
    const Rendezvous rendezvous{settings_.ranks, free_port(), new_run_id()};
    for (int rank = 0; rank < settings_.ranks; ++rank) {
      ProcessSpec spec;
      spec.command = settings_.command;
      spec.environment = rank_environment(rank, rendezvous, scope_.link, settings_.timeout_s, settings_.environment);
      spec.network_namespace = scope_.link.network_namespace(rank);
      start(rank, spec);
    }
  }

  void start(int rank, const ProcessSpec& spec) {
    Process process;
    try {
      process = start_process(spec);
    } catch (const Error& error) {
      throw Error(error.code(), error.what() + std::string("; rank ") + std::to_string(rank) + " was not started");
    }
    scope_.guard.watch(process.pid);
    outcome_.ranks.push_back({process.pid, 0, 0, false});
    ++running_;
    for (bool standard_error : {false, true}) {
      FileDescriptor& fd = standard_error ? process.error : process.output;
      fcntl(fd.get(), F_SETFL, O_NONBLOCK);
      streams_.push_back({rank, standard_error, std::move(fd), {}});
    }
  }

  void wait_for_events(double until_s) {
    std::vector<pollfd> waiting{{scope_.signals.fd(), POLLIN, 0}};
    for (const Stream& stream : streams_) waiting.push_back({stream.fd.get(), POLLIN, 0});  // poll skips fd -1
    const double left_s = std::clamp(until_s - monotonic_seconds(), 0.0, 60.0);
    if (poll(waiting.data(), waiting.size(), static_cast<int>(left_s * 1e3) + 1) <= 0) return;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (waiting[i + 1].revents != 0) read_stream(streams_[i]);
  }

  void read_stream(Stream& stream) {
    std::array<char, 65'536> bytes;
    const ssize_t got = read(stream.fd.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const auto sink = [&](std::string_view line) { hand_on(stream, line); };
    if (got > 0) {
      stream.lines.add({bytes.data(), static_cast<std::size_t>(got)}, sink);
      return;
    }
    stream.lines.finish(sink);
    stream.fd.close();
  }

  void hand_on(const Stream& stream, std::string_view line) {
    if (!logs_.empty()) write_log(stream.rank, line);
    if (!settings_.events.on_line || nobody_reads_) return;
    if (settings_.events.on_line(stream.rank, stream.standard_error, line)) return;
    nobody_reads_ = true;
    interrupt(SIGPIPE);
  }

  void write_log(int rank, std::string_view line) {
    FileDescriptor& log = logs_[static_cast<std::size_t>(rank)];
    if (!log.valid()) return;
    const std::string text = std::string(line) + "\n";
    if (write(log.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
    notice("the log of rank " + std::to_string(rank) + " ends here: " + std::strerror(errno));
    log.close();
  }

  // What ended since the last call. Of several that ended in between, one that a signal killed counts as the first:
  // the others' exits are rather the consequence.
  void reap() {
    std::vector<std::pair<int, int>> ended;  // rank, wait status
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const std::vector<pid_t> all = pids();
      const auto found = std::find(all.begin(), all.end(), pid);
      if (found != all.end()) ended.emplace_back(static_cast<int>(found - all.begin()), status);
    }
    std::stable_sort(ended.begin(), ended.end(),
                     [](const auto& a, const auto& b) { return WIFSIGNALED(a.second) > WIFSIGNALED(b.second); });
    for (const auto& [rank, wait_status] : ended) note_end(rank, wait_status);
  }

  void note_end(int rank, int wait_status) {
    RankOutcome& outcome = outcome_.ranks[static_cast<std::size_t>(rank)];
    outcome.wait_status = wait_status;
    outcome.ended_s = monotonic_seconds() - began_s_;
    --running_;
    if (outcome_.interrupted_by != 0) return;
    if (outcome_.first_failed >= 0) {
      if (!killed_) first_survivor_ended(rank);
    } else if (wait_status != 0) {
      first_failure(rank, wait_status);
    }
  }

  void first_failure(int rank, int wait_status) {
    outcome_.first_failed = rank;
    outcome_.first_failure = describe_wait_status(wait_status);
    outcome_.status = shell_status(wait_status);
    const double patience_s = group_timeout_s(settings_) + kAfterTimeoutS;
    kill_at_s_ = monotonic_seconds() + patience_s;
    kill_reason_ = "still running " + seconds(patience_s) + " after that";
    notice("rank " + std::to_string(rank) + " failed first: " + outcome_.first_failure);
  }

  void first_survivor_ended(int rank) {
    const double at_s = monotonic_seconds() + kGraceS;
    if (survivor_ended_ || at_s >= kill_at_s_) return;
    survivor_ended_ = true;
    kill_at_s_ = at_s;
    kill_reason_ = "still running " + seconds(kGraceS) + " after rank " + std::to_string(rank) + " had ended";
  }

  void interrupt(int signal_number) {
    if (outcome_.interrupted_by != 0) {
      kill_at_s_ = 0;
      return;
    }
    outcome_.interrupted_by = signal_number;
    if (outcome_.first_failed < 0) outcome_.status = 128 + signal_number;
    signal_running(SIGTERM);
    kill_at_s_ = monotonic_seconds() + kGraceS;
    kill_reason_ = "still running " + seconds(kGraceS) + " after SIGTERM";
    if (signal_number != SIGPIPE) notice(signal_name(signal_number) + " received: ending all ranks");
  }

  std::vector<int> signal_running(int signal_number) {
    std::vector<int> signalled;
    for (std::size_t rank = 0; rank < outcome_.ranks.size(); ++rank) {
      RankOutcome& outcome = outcome_.ranks[rank];
      if (outcome.ended_s > 0) continue;
      outcome.ended_by_launcher = true;
      kill(-outcome.pid, signal_number);
      signalled.push_back(static_cast<int>(rank));
    }
    return signalled;
  }

  void kill_the_rest() {
    kill_at_s_ = kNever;
    killed_ = true;
    std::string who;
    for (int rank : signal_running(SIGKILL)) who += (who.empty() ? "" : ", ") + std::to_string(rank);
    if (!who.empty()) notice("SIGKILL to rank " + who + ": " + kill_reason_);
  }

  void drain() {
    const double until_s = monotonic_seconds() + kDrainS;
    const auto open = [](const Stream& stream) { return stream.fd.valid(); };
    while (std::any_of(streams_.begin(), streams_.end(), open) && monotonic_seconds() < until_s) {
      scope_.signals.arrived();  // else an unread one would end every poll at once
      wait_for_events(until_s);
    }
    for (Stream& stream : streams_) stream.lines.finish([&](std::string_view line) { hand_on(stream, line); });
  }

  const LaunchSettings& settings_;
  LaunchScope scope_;
  std::vector<FileDescriptor> logs_;
  std::vector<Stream> streams_;
  LaunchOutcome outcome_;
  const double began_s_ = monotonic_seconds();
  double kill_at_s_ = kNever;
  std::string kill_reason_;
  int running_ = 0;
  bool survivor_ended_ = false;
  bool killed_ = false;
  bool nobody_reads_ = false;
};

void check(const LaunchSettings& settings) {
  if (settings.ranks < 1 || settings.ranks > 1000)
    fail(ErrorCode::kInvalidArgument,
         {"cli::run_ranks", "number of ranks", std::to_string(settings.ranks), "1 to 1000", ""});
  if (settings.command.empty()) fail(ErrorCode::kInvalidArgument, {"cli::run_ranks", "no program to run", "", "", ""});
}

}  // namespace

LaunchOutcome run_ranks(const LaunchSettings& settings) {
  check(settings);
  return Launcher(settings).run();
}

}  // namespace thinwire::cli
