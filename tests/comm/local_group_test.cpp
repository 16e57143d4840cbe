#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/comm/group_checks.hpp"
#include "tests/comm/rank_threads.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/comm/world.hpp"

namespace thinwire::comm {
namespace {

using testing::HasSubstr;

class LocalGroupOfSize : public testing::TestWithParam<int> {};

TEST_P(LocalGroupOfSize, EveryOperationMatchesItsClosedForm) {
  run_ranks(GetParam(), [](World& world) {
    check_every_operation(world.hop1());
    check_every_operation(world.hop2());
    check_many_in_flight(world.hop1());
  });
}

TEST_P(LocalGroupOfSize, CountsWhatItSends) {
  run_ranks(GetParam(), [](World& world) { check_counters(world.hop1()); });
}

TEST_P(LocalGroupOfSize, SumsInRankOrderWithTheSameBitsEverywhere) {
  const int n = GetParam();
  at::Tensor want = at::zeros({64});
  const auto part = [](int rank) {
    return at::sin(at::arange(64, at::kFloat) * static_cast<float>(rank + 1)) *
           static_cast<float>(1 << (4 * rank % 23));
  };
  want.copy_(part(0));
  for (int rank = 1; rank < n; ++rank) want.add_(part(rank));
  run_ranks(n, [&](World& world) {
    at::Tensor tensor = part(world.rank());
    world.hop1().all_reduce(tensor, ReduceOp::kSum, {.what = "dense"})->wait();
    EXPECT_TRUE(at::equal(tensor, want)) << "rank " << world.rank();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, LocalGroupOfSize, testing::Range(1, 9));

// Both ranks start before either waits, and a second thread waits: a start that waited for peers would never end.
TEST(LocalGroup, StartsWithoutWaitingForPeers) {
  auto worlds = make_local_worlds(2, 5'000);
  at::Tensor a = at::ones({3}), b = at::ones({3});
  Handle first = worlds[0]->hop1().all_reduce(a, ReduceOp::kSum, {.what = "dense"});
  Handle second = worlds[1]->hop1().all_reduce(b, ReduceOp::kSum, {.what = "dense"});
  std::thread waiter([&] { first->wait(); });
  second->wait();
  waiter.join();
  EXPECT_TRUE(at::equal(a, at::full({3}, 2.0F)));
}

TEST(LocalGroup, TheTwoHopsNeedNoOrderBetweenThem) {
  run_ranks(2, [](World& world) {
    at::Tensor a = at::ones({3}), b = at::ones({4});
    Group& first = world.rank() == 0 ? world.hop1() : world.hop2();
    Group& second = world.rank() == 0 ? world.hop2() : world.hop1();
    Handle one = first.all_reduce(world.rank() == 0 ? a : b, ReduceOp::kSum, {.what = "x"});
    Handle two = second.all_reduce(world.rank() == 0 ? b : a, ReduceOp::kSum, {.what = "x"});
    one->wait();
    two->wait();
    EXPECT_EQ(a[0].item<float>(), 2.0F);
    EXPECT_EQ(b[0].item<float>(), 2.0F);
  });
}

TEST(LocalGroup, SendWaitsForTheReceive) {
  auto worlds = make_local_worlds(2, 300);
  Handle send = worlds[0]->hop1().send(at::ones({3}), 1, {.what = "activation"});
  try {
    send->wait();
    FAIL() << "a send ended without a receive";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  }
}

// Every rank's error, as (code, text); ranks that did not throw have an empty text.
template <typename Function>
std::vector<std::pair<ErrorCode, std::string>> errors_of(int size, std::int64_t timeout_ms, Function function) {
  auto worlds = make_local_worlds(size, timeout_ms);
  std::vector<std::pair<ErrorCode, std::string>> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        function(*worlds[rank]);
      } catch (const Error& error) {
        errors[rank] = {error.code(), error.what()};
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

TEST(LocalGroup, TimeoutNamesEveryMissingRankOnAllWaiters) {
  const auto errors = errors_of(4, 300, [](World& world) {
    if (world.rank() == 1 || world.rank() == 3) return;
    world.hop1().barrier({.what = "barrier", .step = 7, .bucket = 2})->wait();
  });
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(errors[rank].first, ErrorCode::kTimeout);
    EXPECT_THAT(errors[rank].second, HasSubstr("barrier in step 7 bucket 2"));
    EXPECT_THAT(errors[rank].second, HasSubstr("ranks 1, 3"));
  }
}

TEST(LocalGroup, DifferentOperationsNameBothOnAllRanks) {
  const auto errors = errors_of(3, 5'000, [](World& world) {
    at::Tensor tensor = at::zeros({world.rank() == 2 ? 5 : 4});
    world.hop1().all_reduce(tensor, ReduceOp::kSum, {.what = "dense", .step = 3})->wait();
  });
  for (const auto& [code, text] : errors) {
    EXPECT_EQ(code, ErrorCode::kMismatch);
    EXPECT_THAT(text, HasSubstr("all_reduce of 4 x Float"));
    EXPECT_THAT(text, HasSubstr("all_reduce of 5 x Float"));
    EXPECT_THAT(text, HasSubstr("rank 2"));
  }
}

TEST(LocalGroup, DifferentTagsAreAMismatch) {
  const auto errors = errors_of(2, 5'000, [](World& world) {
    world.hop1().barrier({.what = "hop 1", .step = 1, .bucket = world.rank()})->wait();
  });
  for (const auto& [code, text] : errors) EXPECT_EQ(code, ErrorCode::kMismatch) << text;
}

TEST(LocalGroup, SplitsThatDoNotFitAreAMismatch) {
  const auto errors = errors_of(2, 5'000, [](World& world) {
    const std::int64_t send = world.rank() == 0 ? 3 : 2;  // rank 1 expects 2 from rank 0
    const at::Tensor in = at::zeros({send + 2}, at::kByte);
    const std::vector<std::int64_t> in_splits =
        world.rank() == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{2, 2};
    world.hop1().all_to_all(at::zeros({4}, at::kByte), in, {2, 2}, in_splits, {.what = "hop 1"})->wait();
  });
  for (const auto& [code, text] : errors) {
    EXPECT_EQ(code, ErrorCode::kMismatch);
    EXPECT_THAT(text, HasSubstr("rank 0 sends 3 bytes, rank 1 expects 2"));
  }
}

TEST(LocalGroup, ShutdownFreesEveryWaiterAndKillsTheGroup) {
  const auto errors = errors_of(3, 60'000, [](World& world) {
    if (world.rank() == 0) {
      world.hop1().shutdown();
      world.hop1().shutdown();
    }
    world.hop1().barrier({.what = "barrier"})->wait();
  });
  for (const auto& [code, text] : errors) {
    EXPECT_EQ(code, ErrorCode::kPeerFailure);
    EXPECT_THAT(text, HasSubstr("rank 0 has shut the group down"));
  }
}

TEST(LocalGroup, DroppingAWorldFailsWhoWaitsForIt) {
  auto worlds = make_local_worlds(2, 60'000);
  std::thread waiter([&] {
    EXPECT_THROW(worlds[0]->hop1().barrier({.what = "barrier"})->wait(), Error);
    EXPECT_THROW(worlds[0]->hop1().barrier({.what = "barrier"})->wait(), Error);
  });
  worlds[1].reset();
  waiter.join();
}

// Several operations are open when the group goes: each of them fails, in either order of destruction.
TEST(LocalGroup, DroppingAWorldWithOpenOperations) {
  auto worlds = make_local_worlds(2, 60'000);
  std::vector<Handle> open;
  for (int i = 0; i < 3; ++i) open.push_back(worlds[0]->hop1().barrier({.what = "barrier", .step = i}));
  worlds[1].reset();
  for (auto& handle : open) EXPECT_THROW(handle->wait(), Error);
  worlds[0].reset();
  for (auto& handle : open) EXPECT_THROW(handle->wait(), Error);
}

TEST(LocalGroup, WrongArgumentsAreRefusedAndLeaveTheGroupUsable) {
  auto worlds = make_local_worlds(1);
  Group& group = worlds[0]->hop1();
  const at::Tensor three = at::zeros({3}), four = at::zeros({4});
  const auto refused = [](auto call) {
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    }
  };
  refused([&] { group.all_gather(four, three, {}); });
  refused([&] { group.all_reduce(at::zeros({4, 4}).t(), ReduceOp::kSum, {}); });
  refused([&] { group.all_reduce(at::zeros({4}, at::kByte), ReduceOp::kSum, {}); });
  refused([&] { group.all_reduce(at::Tensor(), ReduceOp::kSum, {}); });
  refused([&] { group.reduce_scatter(four, three, ReduceOp::kSum, {}); });
  refused([&] { group.broadcast(four, 1, {}); });
  refused([&] { group.send(four, 0, {}); });
  refused([&] { group.all_to_all(four.to(at::kByte), four.to(at::kByte), {3}, {4}, {}); });
  refused([&] { group.all_to_all(four, four, {4}, {4}, {}); });
  refused([&] { make_local_worlds(0); });
  group.barrier({.what = "barrier"})->wait();
  EXPECT_EQ(group.counters().total(), 0);
}

// Tensors belong to the operation until it ends, whatever the caller does with its own references.
TEST(LocalGroup, OwnsItsTensors) {
  auto worlds = make_local_worlds(2, 5'000);
  at::Tensor kept = at::zeros({1000});
  Handle receive = worlds[0]->hop1().recv(kept, 1, {.what = "activation"});
  Handle send = [&] { return worlds[1]->hop1().send(at::ones({1000}), 0, {.what = "activation"}); }();
  receive->wait();
  send->wait();
  EXPECT_EQ(kept.sum().item<float>(), 1000.0F);
}

}  // namespace
}  // namespace thinwire::comm
