// Mistakes at start-up: each ends with one message that names rank, host, key and value, on every rank that it
// concerns.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/dist/process_ranks.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::RankResult;
using tests::RankSpec;

constexpr int kTimeoutS = 4;
constexpr int kExitError = 3;

// What each process does: start, one barrier, say how it went.
TEST(RankBody, DISABLED_Start) {
  if (const char* files = std::getenv("THINWIRE_TEST_FILES")) {
    const rlimit limit{static_cast<rlim_t>(std::atoi(files)), static_cast<rlim_t>(std::atoi(files))};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (const char* open = std::getenv("THINWIRE_TEST_OPEN_FILES"))
    for (int i = std::atoi(open); i > 0; --i)
      if (dup(STDERR_FILENO) < 0) std::perror("dup");
  try {
    auto world = init_from_env();
    world->hop1().barrier({.what = "barrier"})->wait();
    std::puts("STARTED");
  } catch (const Error& error) {
    std::printf("ERROR %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    std::fflush(stdout);
    std::exit(kExitError);
  }
}

using Variables = std::map<std::string, std::string>;

class Job {
 public:
  void add(int rank, int size, const Variables& changes = {}) {
    RankSpec spec{.arguments = {"--gtest_also_run_disabled_tests", "--gtest_filter=RankBody.DISABLED_Start"},
                  .environment = tests::rank_variables(rank, size, port_)};
    spec.environment["THINWIRE_TIMEOUT_S"] = std::to_string(kTimeoutS);
    for (const auto& [name, value] : changes) spec.environment[name] = value;
    specs_.push_back(spec);
  }
  // Every process must end by itself, within 1.5 timeouts and what starting a process costs on a busy machine.
  std::vector<RankResult> run() {
    auto results = tests::run_processes(specs_, kTimeoutS * 1500 + 10'000);
    for (const RankResult& result : results) EXPECT_NE(result.status, -1) << "did not end:\n" << result.output;
    return results;
  }
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = tests::free_port();
  std::vector<RankSpec> specs_;
};

// A listener that is not a store. Closed connections are not answered; others get `says`, if anything.
class Squatter {
 public:
  explicit Squatter(int port, std::string says = "") : says_(std::move(says)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ADD_FAILURE() << "bind failed";
    listen(listener_, 16);
    if (!says_.empty()) server_ = std::thread([this] { serve(); });
  }
  ~Squatter() {
    shutdown(listener_, SHUT_RDWR);
    if (server_.joinable()) server_.join();
    close(listener_);
  }
  Squatter(const Squatter&) = delete;
  Squatter& operator=(const Squatter&) = delete;

 private:
  void serve() {
    for (int peer = accept(listener_, nullptr, nullptr); peer >= 0; peer = accept(listener_, nullptr, nullptr)) {
      if (write(peer, says_.data(), says_.size()) < 0) std::perror("write");
      usleep(20'000);
      close(peer);
    }
  }

  std::string says_;
  int listener_;
  std::thread server_;
};

void expect_error(const RankResult& result, const testing::Matcher<std::string>& text) {
  EXPECT_EQ(result.status, kExitError) << result.output;
  EXPECT_THAT(result.output, text);
}

TEST(StartUp, WithoutMistakesSucceeds) {
  Job job;
  for (int rank = 0; rank < 3; ++rank) job.add(rank, 3);
  for (const RankResult& result : job.run()) EXPECT_EQ(result.status, 0) << result.output;
}

TEST(StartUp, ClosedPort) {
  Job job;
  const std::string other = std::to_string(tests::free_port());
  job.add(0, 2);
  job.add(1, 2, {{"MASTER_PORT", other}});
  const auto results = job.run();
  expect_error(results[0],
               AllOf(HasSubstr("ERROR timeout"), HasSubstr("rank 1 of 2 did not arrive"), HasSubstr(job.address())));
  expect_error(results[1], AllOf(HasSubstr("ERROR timeout"), HasSubstr("rank 1 (host "),
                                 HasSubstr("127.0.0.1:" + other), HasSubstr("MASTER_PORT"), HasSubstr("refused")));
}

TEST(StartUp, UnknownHostName) {
  Job job;
  job.add(1, 2, {{"MASTER_ADDR", "no-such-host.invalid"}});
  expect_error(job.run()[0],
               AllOf(HasSubstr("rank 1 (host "), HasSubstr("no-such-host.invalid"), HasSubstr("cannot be resolved")));
}

TEST(StartUp, SomethingElseThatTalksOnThePort) {
  Job job;
  const Squatter squatter(job.port(), "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  job.add(1, 2);
  expect_error(job.run()[0], HasSubstr(job.address()));
}

TEST(StartUp, SomethingSilentOnThePort) {
  Job job;
  const Squatter squatter(job.port());
  job.add(1, 2);
  expect_error(job.run()[0], AllOf(HasSubstr("ERROR timeout"), HasSubstr(job.address()), HasSubstr("silence")));
}

TEST(StartUp, PortInUse) {
  Job job;
  const Squatter squatter(job.port());
  job.add(0, 2);
  expect_error(job.run()[0], AllOf(HasSubstr("ERROR mismatch"), HasSubstr("rank 0"), HasSubstr("in use"),
                                   HasSubstr(std::to_string(job.port()))));
}

TEST(StartUp, TwoJobsOnOneStore) {
  Job job;
  job.add(0, 2, {{"THINWIRE_JOB_ID", "a"}});
  job.add(1, 2, {{"THINWIRE_JOB_ID", "b"}});
  job.add(1, 2, {{"THINWIRE_JOB_ID", "a"}});
  const auto results = job.run();
  expect_error(results[1], AllOf(HasSubstr("ERROR "), HasSubstr("rank 1"), HasSubstr(job.address())));
  EXPECT_EQ(results[0].status, 0) << results[0].output;
  EXPECT_EQ(results[2].status, 0) << results[2].output;
}

TEST(StartUp, RankGivenTwice) {
  Job job;
  job.add(0, 3);
  job.add(1, 3);
  job.add(1, 3);
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR mismatch"), HasSubstr("rank 1 was given twice"), HasSubstr("pid ")));
}

TEST(StartUp, WorldSizesThatDiffer) {
  Job job;
  job.add(0, 3);
  job.add(1, 4);
  job.add(2, 3);
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR mismatch"), HasSubstr("world sizes differ"), HasSubstr("4 at rank 1")));
}

TEST(StartUp, TimeoutsThatDiffer) {
  Job job;
  job.add(0, 3);
  job.add(1, 3, {{"THINWIRE_TIMEOUT_S", "4.5"}});
  job.add(2, 3);
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR mismatch"), HasSubstr("timeouts differ"),
                               HasSubstr("4 s on ranks 0, 2 and 4.5 s on rank 1")));
}

TEST(StartUp, RankOutsideTheWorld) {
  Job job;
  job.add(0, 2);
  job.add(2, 2);
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR invalid argument"), HasSubstr("rank 2"), HasSubstr("in a world of 2")));
}

TEST(StartUp, MissingRanksAreAllNamed) {
  Job job;
  job.add(0, 4);
  job.add(2, 4);
  for (const RankResult& result : job.run())
    expect_error(result,
                 AllOf(HasSubstr("ERROR timeout"), HasSubstr("ranks 1, 3 of 4 did not arrive"), HasSubstr("4 s")));
}

TEST(StartUp, WrongInterface) {
  Job job;
  job.add(0, 3);
  job.add(1, 3, {{"GLOO_SOCKET_IFNAME", "nope"}});
  job.add(2, 3);
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR not found"), HasSubstr("\"nope\""), HasSubstr("one of"),
                               HasSubstr("lo"), HasSubstr("rank 1 (host ")));
}

TEST(StartUp, TooFewFileDescriptors) {
  Job job;
  job.add(0, 2);
  job.add(1, 2, {{"THINWIRE_TEST_FILES", "40"}});
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR unavailable"), HasSubstr("got 40"), HasSubstr("at least "),
                               HasSubstr("rank 1 (host ")));
}

// 256 would do for two ranks, but the program has used them up.
TEST(StartUp, FileDescriptorsThatAreTaken) {
  Job job;
  job.add(0, 2);
  job.add(1, 2, {{"THINWIRE_TEST_FILES", "256"}, {"THINWIRE_TEST_OPEN_FILES", "200"}});
  for (const RankResult& result : job.run())
    expect_error(result, AllOf(HasSubstr("ERROR unavailable"), HasSubstr("got 256"), HasSubstr("are open already"),
                               HasSubstr("rank 1 (host ")));
}

TEST(StartUp, GarbledVariable) {
  Job job;
  job.add(1, 2, {{"RANK", "one"}});
  expect_error(job.run()[0], AllOf(HasSubstr("ERROR invalid argument"), HasSubstr("RANK"), HasSubstr("\"one\"")));
}

}  // namespace
}  // namespace thinwire::comm
