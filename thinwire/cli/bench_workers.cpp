#include "thinwire/cli/bench_workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/cli/rank_environment.hpp"

namespace thinwire::cli {
namespace {

constexpr double kStartLimitS = 120;      // importing torch on busy processors
constexpr double kStepLimitS = 60;        // of one step of the slowest contender on the slowest sensible link
constexpr std::size_t kLastWords = 2000;  // of what a worker wrote to standard error, for the message when it ends

}  // namespace

BenchWorkers::BenchWorkers(LaunchScope& scope, WorkerProgram program, int ranks)
    : scope_(scope), program_(std::move(program)) {
  const Rendezvous rendezvous{ranks, free_port(), new_run_id()};
  // One thread per rank for everybody: ranks share the processors, and every contender must do the same work.
  const Variables one_thread{{"OMP_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}};
  for (int rank = 0; rank < ranks; ++rank) {
    ProcessSpec spec{program_.command, rank_environment(rank, rendezvous, scope.link, 0, one_thread),
                     scope.link.network_namespace(rank), true};
    Worker worker;
    worker.process = start_process(spec);
    scope.guard.watch(worker.process.pid);
    for (const FileDescriptor* fd : {&worker.process.output, &worker.process.error})
      fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    workers_.push_back(std::move(worker));
  }
}

std::string BenchWorkers::wait_until_ready() {
  for (const nlohmann::json& answer : collect(kStartLimitS))
    if (answer.contains("unavailable")) return answer["unavailable"].get<std::string>();
  return "";
}

std::vector<nlohmann::json> BenchWorkers::run(const std::string& contender, int steps) {
  ask("run " + contender + " " + std::to_string(steps) + "\n");
  return collect(kStepLimitS * (steps + 1));
}

void BenchWorkers::ask(const std::string& line) {
  for (std::size_t rank = 0; rank < workers_.size(); ++rank)
    if (write(workers_[rank].process.input.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      ended(rank);
}

// One answer of every rank.
std::vector<nlohmann::json> BenchWorkers::collect(double limit_s) {
  const Deadline limit = Deadline::in_ms(static_cast<std::int64_t>(limit_s * 1e3));
  for (;;) {
    std::string missing;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank)
      if (workers_[rank].answers.empty()) missing += " " + std::to_string(rank);
    if (missing.empty()) break;
    if (limit.passed())
      fail(ErrorCode::kTimeout, {"bench step",
                                 program_.title + ": no answer within " + std::to_string(static_cast<int>(limit_s)) +
                                     " s from rank" + missing,
                                 "", "", ""});
    wait_for_output();
  }
  std::vector<nlohmann::json> answers;
  for (Worker& worker : workers_) {
    answers.push_back(worker.answers.front());
    worker.answers.erase(worker.answers.begin());
  }
  return answers;
}

void BenchWorkers::wait_for_output() {
  std::vector<pollfd> waiting{{scope_.signals.fd(), POLLIN, 0}};
  for (const Worker& worker : workers_) {
    waiting.push_back({worker.process.output.get(), POLLIN, 0});
    waiting.push_back({worker.process.error.get(), POLLIN, 0});
  }
  poll(waiting.data(), waiting.size(), 500);
  for (int signal_number : scope_.signals.arrived())
    if (signal_number != SIGCHLD) throw Interrupted{signal_number};
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    Worker& worker = workers_[rank];
    read_some(worker.process.error, worker.err, [&](std::string_view line) {
      worker.last_words += std::string(line) + "\n";
      if (worker.last_words.size() > kLastWords) worker.last_words.erase(0, worker.last_words.size() - kLastWords);
    });
    const bool open =
        read_some(worker.process.output, worker.out, [&](std::string_view line) { take_answer(worker, line); });
    if (!open && worker.answers.empty()) ended(rank);
  }
}

// False when the stream has ended.
bool BenchWorkers::read_some(FileDescriptor& fd, LineSplitter& lines,
                             const std::function<void(std::string_view)>& sink) {
  std::array<char, 16'384> bytes;
  while (fd.valid()) {
    const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
      lines.finish(sink);
      fd.close();
    } else {
      lines.add({bytes.data(), static_cast<std::size_t>(got)}, sink);
    }
  }
  return false;
}

// Libraries write to standard output, too: what is no JSON object is theirs.
void BenchWorkers::take_answer(Worker& worker, std::string_view line) {
  nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
  if (answer.is_object())
    worker.answers.push_back(std::move(answer));
  else
    worker.last_words += std::string(line) + "\n";
}

void BenchWorkers::ended(std::size_t rank) {
  const Worker& worker = workers_[rank];
  int status = 0;
  // It closed its output, so it is about to end; if not, whatever it still does is of no use.
  const Deadline patience = Deadline::in_ms(1'000);
  while (waitpid(worker.process.pid, &status, WNOHANG) == 0) {
    if (patience.passed()) kill(worker.process.pid, SIGKILL);
    usleep(5'000);
  }
  fail(ErrorCode::kPeerFailure, {"bench step",
                                 program_.title + ", rank " + std::to_string(rank) + ", ended (" +
                                     describe_wait_status(status) + "); its last words:\n" + worker.last_words,
                                 "", "", ""});
}

}  // namespace thinwire::cli
