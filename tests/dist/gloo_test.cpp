// Gloo between processes: every operation against its closed form. Each RankBody test is what one rank does; it is run
// by the tests below in processes of its own.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/group_checks.hpp"
#include "tests/dist/process_ranks.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/comm/sockets.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {
namespace {

using testing::HasSubstr;

TEST(RankBody, DISABLED_EveryOperation) {
  auto world = init_from_env();
  for (Group* group : {&world->hop1(), &world->hop2()}) {
    EXPECT_EQ(group->rank(), world->rank());
    EXPECT_EQ(group->size(), world->size());
    EXPECT_EQ(group->description(), "gloo");
    check_every_operation(*group);
    check_many_in_flight(*group);
    check_counters(*group);
  }
  EXPECT_FALSE(world->emulated());
}

// Sums of numbers whose order matters: the same bits everywhere.
TEST(RankBody, DISABLED_SameBits) {
  auto world = init_from_env();
  Group& group = world->hop1();
  at::manual_seed(17 + world->rank());
  at::Tensor tensor = at::randn({10'007}) * at::pow(10.0, at::randn({10'007}));
  group.all_reduce(tensor, ReduceOp::kSum, {.what = "dense"})->wait();
  at::Tensor all = at::empty({world->size(), 10'007});
  group.all_gather(all, tensor, {.what = "gather"})->wait();
  for (int rank = 0; rank < world->size(); ++rank) EXPECT_TRUE(at::equal(all[rank], tensor)) << "rank " << rank;
}

// Both groups at work at the same time, megabytes in flight.
TEST(RankBody, DISABLED_BothHopsAtOnce) {
  auto world = init_from_env();
  const int n = world->size();
  for (int round = 0; round < 20; ++round) {
    at::Tensor one = at::full({300'000}, world->rank() + round, at::kFloat);
    at::Tensor in = at::full({100'000}, world->rank(), at::kByte), out = at::empty({n, 100'000}, at::kByte);
    Handle first = world->hop1().all_reduce(one, ReduceOp::kSum, {.what = "dense", .step = round});
    Handle second = world->hop2().all_gather(out, in, {.what = "hop 2", .step = round});
    second->wait();
    first->wait();
    EXPECT_EQ(one[299'999].item<float>(), static_cast<float>(n * round + n * (n - 1) / 2));
    EXPECT_EQ(out[n - 1][99'999].item<int>(), n - 1);
  }
}

// A second world after the first, in the same processes and on the same port.
TEST(RankBody, DISABLED_TwoWorlds) {
  for (int round = 0; round < 3; ++round) {
    auto world = init_from_env();
    check_reductions(world->hop1(), 7);
  }
}

// The emulated link is a lower bound: 250,000 bytes both ways at 8 Mbit/s are at least 0.25 s.
TEST(RankBody, DISABLED_EmulatedLink) {
  auto world = init_from_env();
  EXPECT_TRUE(world->emulated());
  EXPECT_THAT(world->hop1().description(), HasSubstr("gloo + emulated link of 8mbit"));
  const double begin_s = monotonic_seconds();
  at::Tensor in = at::zeros({250'000}, at::kByte), out = at::empty({world->size(), 250'000}, at::kByte);
  world->hop1().all_gather(out, in, {.what = "hop 2"})->wait();
  EXPECT_GE(monotonic_seconds() - begin_s, 0.25 * (world->size() - 1));
}

// Connections that this process opens to an address on which no rank listens, as fast as it can.
class Stranger {
 public:
  ~Stranger() {
    for (const int descriptor : descriptors_) close(descriptor);
  }
  bool connect_once() {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(0x7f000002);  // 127.0.0.2
    socklen_t size = sizeof there;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    descriptors_.insert(descriptors_.end(), {listener, client});
    if (bind(listener, reinterpret_cast<sockaddr*>(&there), size) != 0 || listen(listener, 1) != 0) return false;
    if (getsockname(listener, reinterpret_cast<sockaddr*>(&there), &size) != 0) return false;
    return connect(client, reinterpret_cast<sockaddr*>(&there), size) == 0;
  }
  // How many have been shut down.
  int ended() const {
    int count = 0;
    for (std::size_t i = 1; i < descriptors_.size(); i += 2) {
      char byte = 0;
      if (recv(descriptors_[i], &byte, 1, MSG_DONTWAIT) == 0) ++count;
    }
    return count;
  }

 private:
  std::vector<int> descriptors_;  // listener, client, listener, client ...
};

// A group that fails shuts its own connections down, not those which others have opened while it formed.
TEST(RankBody, DISABLED_StrangersSurvive) {
  Stranger stranger;
  std::atomic<bool> formed{false};
  std::thread thread([&] {
    for (int i = 0; i < 400 && !formed; ++i) {
      EXPECT_TRUE(stranger.connect_once());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  auto world = init_from_env();
  formed = true;
  thread.join();
  world->hop1().barrier({.what = "barrier"})->wait();
  world->hop1().shutdown();
  world->hop2().shutdown();
  EXPECT_EQ(stranger.ended(), 0);
}

// What a rank starts must not hold its connections open when the rank has died.
TEST(RankBody, DISABLED_NothingToInherit) {
  auto world = init_from_env();
  const std::vector<ConnectedSocket> sockets = connected_since({});
  EXPECT_GE(std::ssize(sockets), 2 * (world->size() - 1));
  for (const ConnectedSocket& socket : sockets)
    EXPECT_NE(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC, 0) << "connection to port " << socket.peer_port;
  world->hop1().barrier({.what = "barrier"})->wait();
}

void expect_all_pass(int size, const std::string& body, const std::map<std::string, std::string>& more = {}) {
  const auto results = tests::run_world(
      size, {"--gtest_also_run_disabled_tests", "--gtest_filter=RankBody.DISABLED_" + body}, 60'000, more);
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].status, 0) << "rank " << rank << " of " << size << ":\n" << results[rank].output;
}

class GlooWorldOf : public testing::TestWithParam<int> {};

TEST_P(GlooWorldOf, DoesEveryOperation) {
  expect_all_pass(GetParam(), "EveryOperation");
}
TEST_P(GlooWorldOf, SumsToTheSameBits) {
  expect_all_pass(GetParam(), "SameBits");
}
TEST_P(GlooWorldOf, RunsBothHopsAtOnce) {
  expect_all_pass(GetParam(), "BothHopsAtOnce");
}

INSTANTIATE_TEST_SUITE_P(Worlds, GlooWorldOf, testing::Values(2, 3, 4), testing::PrintToStringParamName());

TEST(GlooWorld, CanBeFormedAgain) {
  expect_all_pass(2, "TwoWorlds");
}
TEST(GlooWorld, CanBeSlowedDown) {
  expect_all_pass(2, "EmulatedLink", {{"THINWIRE_EMULATED_LINK", "8mbit"}});
}
TEST(GlooWorld, LeavesTheConnectionsOfOthersAlone) {
  expect_all_pass(2, "StrangersSurvive");
}
TEST(GlooWorld, LeavesNoConnectionToProgramsThatARankStarts) {
  expect_all_pass(3, "NothingToInherit");
}
TEST(GlooWorld, IsNotSlowedByALinkWithoutLimit) {
  expect_all_pass(2, "EveryOperation", {{"THINWIRE_EMULATED_LINK", "none"}});
}

// Alone, also where a launcher says so, no network is touched.
TEST(GlooWorld, OfOneNeedsNoNetwork) {
  const auto world = init_from_env();
  EXPECT_EQ(world->size(), 1);
  EXPECT_FALSE(world->emulated());
  check_every_operation(world->hop1());
  EXPECT_EQ(world->hop1().counters().total(), 0);
}

}  // namespace
}  // namespace thinwire::comm
