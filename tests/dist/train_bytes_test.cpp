// Bytes of training over Gloo: counted at the groups to the byte, and at the network interface of a shaped link.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/dist/train_bodies.hpp"
#include "tests/dist/train_parts.hpp"
#include "tests/train/expected_bytes.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/cli/netlab.hpp"

namespace thinwire::tests {
namespace {

using train::Shape;
using train::Vectors;

// ---- at the groups

TEST(RankBody, DISABLED_CountedAtTheGroups) {
  const auto world = init_from_env();
  const std::string kind = given("TRAIN_KIND");
  Vectors net(train::kUnevenShapes);
  DataParallel parallel(*net, *world, {.codec = codec_of(kind), .bucket_bytes = 16384, .first_bucket_bytes = 8192});
  const auto optimizer = make_optimizer(parallel, kind, 3);
  for (std::int64_t step = 0; step < 8; ++step) {
    const std::int64_t want = train::expected_bytes(parallel, *world).total(), before = parallel.sent_bytes();
    optimizer->zero_grad();
    loss_with(net, train::random_gradients(train::kUnevenShapes, step, world->rank())).backward();
    EXPECT_EQ(parallel.sent_bytes() - before, want) << kind << ", step " << step << ", rank " << world->rank();
    EXPECT_GT(want, 0);
    optimizer->step();  // after the first one rank 0's order of arrival is sent, once in a run
    if (step > 0) {
      EXPECT_EQ(parallel.sent_bytes() - before, want);
    }
  }
  const char* stage = kind == "one_bit" ? "one_bit" : "dense";
  EXPECT_EQ(parallel.last_step().optimizer_stage, stage);
}

class TrainBytes : public testing::TestWithParam<int> {};

TEST_P(TrainBytes, AtTheGroupsAreThoseOfTheFormula) {
  for (const char* kind : {"dense", "int4", "one_bit"})
    expect_body_passes(GetParam(), "CountedAtTheGroups", {{"TRAIN_KIND", kind}});
}

INSTANTIATE_TEST_SUITE_P(Worlds, TrainBytes, testing::Values(2, 3, 4), testing::PrintToStringParamName());

// ---- at the interface

constexpr std::int64_t kSteps = 20;
constexpr int kFreeze = 2;

void enter_network(const std::string& name) {
  const int descriptor = ::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0) << name;
  ASSERT_EQ(::setns(descriptor, CLONE_NEWNET), 0) << name;
  ::close(descriptor);
}

// What /sys/class/net/eth0/statistics/tx_bytes says, without a sysfs of this namespace.
std::int64_t sent_by_interface() {
  std::ifstream table("/proc/thread-self/net/dev");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name != "eth0:") continue;
    std::int64_t value = -1;
    for (int i = 0; i < 9; ++i) fields >> value;  // eight columns of what was received come first
    return value;
  }
  ADD_FAILURE() << "no eth0 here";
  return -1;
}

TEST(RankBody, DISABLED_CountedAtTheInterface) {
  enter_network(given("TRAIN_NETWORK"));
  const auto world = init_from_env();
  const std::string kind = given("TRAIN_KIND");
  const std::vector<Shape> shapes(10, Shape{1000, 1000});
  Vectors net(shapes);
  DataParallel parallel(*net, *world);
  const auto optimizer = make_optimizer(parallel, kind, kFreeze);
  const auto gradients = train::random_gradients(shapes, 0, world->rank());
  const auto train_steps = [&](std::int64_t count) {
    for (std::int64_t step = 0; step < count; ++step) {
      optimizer->zero_grad();
      loss_with(net, gradients).backward();
      optimizer->step();
    }
    parallel.barrier();
  };
  train_steps(kFreeze + 1);
  const std::int64_t before = parallel.sent_bytes(), before_at_interface = sent_by_interface();
  train_steps(kSteps);
  const auto sent = static_cast<double>(parallel.sent_bytes() - before);
  const auto seen = static_cast<double>(sent_by_interface() - before_at_interface);
  std::printf("\nFIGURES %s rank %d: %.0f bytes a step at the groups, %.0f at the interface, ratio %.4f\n",
              kind.c_str(), world->rank(), sent / kSteps, seen / kSteps, seen / sent);
  EXPECT_NEAR(seen / sent, 1.0, 0.03);
}

// 10 million parameters on 2 ranks; acknowledgements, headers and the watchdog's beats are part of what is seen.
TEST(TrainBytesAtTheInterface, AreThoseAtTheGroups) {
  const std::string why = cli::why_no_netlab();
  if (!why.empty()) GTEST_SKIP() << "no network namespaces: " << why;
  for (const char* kind : {"dense", "one_bit"}) {
    const cli::NetLab lab(2, "1gbit");
    const int port = free_port();
    std::vector<RankSpec> specs;
    for (int rank = 0; rank < 2; ++rank) {
      RankSpec spec{.arguments = body_arguments("CountedAtTheInterface"), .environment = rank_variables(rank, 2, port)};
      spec.environment["LOCAL_RANK"] = "0";
      spec.environment["MASTER_ADDR"] = cli::NetLab::address(0);
      spec.environment["GLOO_SOCKET_IFNAME"] = cli::NetLab::kInterface;
      spec.environment["TRAIN_KIND"] = kind;
      spec.environment["TRAIN_NETWORK"] = lab.host(rank);
      specs.push_back(std::move(spec));
    }
    const auto results = run_processes(specs, 120'000);
    expect_all_passed(results);
    for (const RankResult& result : results)
      for (const std::string& line : lines_of(result.output, "FIGURES")) std::printf("%s\n", line.c_str());
  }
}

}  // namespace
}  // namespace thinwire::tests
