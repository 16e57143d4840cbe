// A world seeded by a process group that somebody else made, as Python hands one over.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/comm/group_checks.hpp"
#include "tests/dist/process_ranks.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/process_group_world.hpp"

namespace thinwire::comm {
namespace {

using testing::HasSubstr;
using Seeds = c10::intrusive_ptr<c10d::ProcessGroup>;

int number(const char* name) {
  return std::atoi(std::getenv(name));
}

c10::intrusive_ptr<c10d::Store> open_store() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(number("MASTER_PORT"));
  options.isServer = number("RANK") == 0;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(20);
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

Seeds make_seed(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, bool with_store) {
  const int rank = number("RANK"), size = number("WORLD_SIZE");
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>(name, store);
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(20));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, rank, size, options);
  Seeds group = with_store ? c10::make_intrusive<c10d::ProcessGroup>(prefixed, rank, size)
                           : c10::make_intrusive<c10d::ProcessGroup>(rank, size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::intrusive_ptr<c10d::Backend>(backend));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
}

void check_world(World& world) {
  EXPECT_EQ(world.rank(), number("RANK"));
  EXPECT_EQ(world.size(), number("WORLD_SIZE"));
  for (Group* group : {&world.hop1(), &world.hop2()}) {
    check_every_operation(*group);
    check_counters(*group);
  }
}

TEST(RankBody, DISABLED_OwnGroupsOnItsStore) {
  const auto store = open_store();
  const Seeds one = make_seed(store, "one", true), two = make_seed(store, "two", true);
  for (int round = 0; round < 2; ++round) {
    auto world = world_from_process_groups(one, two);
    check_world(*world);
  }
  world_from_process_groups(one, two)->hop1().barrier({.what = "barrier"})->wait();
}

TEST(RankBody, DISABLED_TheGroupsThemselves) {
  const auto store = open_store();
  auto world = world_from_process_groups(make_seed(store, "one", false), make_seed(store, "two", false));
  check_world(*world);
  world->hop1().barrier({.what = "barrier"})->wait();
}

// Nothing in the backend itself refuses them: the other rank does not come, and the wait would last for 20 s.
TEST(RankBody, DISABLED_RefusesCallsAfterAShutdown) {
  const auto store = open_store();
  auto world = world_from_process_groups(make_seed(store, "one", false), make_seed(store, "two", false));
  world->hop1().barrier({.what = "barrier"})->wait();
  if (world->rank() == 0) {
    world->hop1().shutdown();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        world->hop1().barrier({.what = "barrier", .step = 7})->wait();
        ADD_FAILURE() << "accepted a call after shutdown()";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kPeerFailure);
        EXPECT_THAT(error.what(), HasSubstr("barrier in step 7"));
        EXPECT_THAT(error.what(), HasSubstr("this group was shut down before"));
      }
    }
  }
  world->hop2().barrier({.what = "barrier"})->wait();
}

// Over given groups the link is emulated as well, and said to be.
TEST(RankBody, DISABLED_SaysThatItsLinkIsEmulated) {
  const auto store = open_store();
  for (const bool with_store : {true, false}) {
    const std::string name = with_store ? "with " : "without ";
    const Seeds one = make_seed(store, name + "one", with_store), two = make_seed(store, name + "two", with_store);
    EXPECT_FALSE(world_from_process_groups(one, two)->emulated());
    auto slowed = world_from_process_groups(one, two, {.link = "1gbit"});
    EXPECT_TRUE(slowed->emulated());
    slowed->hop1().barrier({.what = "barrier"})->wait();
  }
}

void expect_all_pass(int size, const std::string& body) {
  const auto results =
      tests::run_world(size, {"--gtest_also_run_disabled_tests", "--gtest_filter=RankBody.DISABLED_" + body});
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].status, 0) << "rank " << rank << " of " << size << ":\n" << results[rank].output;
}

TEST(ProcessGroupWorld, FormsOwnGroupsOnTheStore) {
  for (const int size : {2, 3}) expect_all_pass(size, "OwnGroupsOnItsStore");
}

TEST(ProcessGroupWorld, RefusesCallsAfterAShutdown) {
  expect_all_pass(2, "RefusesCallsAfterAShutdown");
}

TEST(ProcessGroupWorld, SaysThatItsLinkIsEmulated) {
  expect_all_pass(2, "SaysThatItsLinkIsEmulated");
}

TEST(ProcessGroupWorld, UsesTheGroupsWhenTheyHaveNoStore) {
  expect_all_pass(2, "TheGroupsThemselves");
}

}  // namespace
}  // namespace thinwire::comm
