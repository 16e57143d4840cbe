#include "thinwire/watch/timeline.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "thinwire/base/error.hpp"

namespace thinwire::watch {
namespace {

std::vector<std::int64_t> steps_of(const Timeline& timeline) {
  std::vector<std::int64_t> steps;
  for (const Event& event : timeline.events()) steps.push_back(event.step);
  return steps;
}

TEST(Timeline, KeepsTheLastOnesOldestFirstAndCountsTheRest) {
  Timeline timeline(3);
  EXPECT_TRUE(timeline.events().empty());
  for (std::int64_t step = 0; step < 3; ++step) timeline.record({.step = step});
  EXPECT_EQ(steps_of(timeline), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(timeline.dropped(), 0);
  for (std::int64_t step = 3; step < 8; ++step) timeline.record({.step = step});
  EXPECT_EQ(steps_of(timeline), (std::vector<std::int64_t>{5, 6, 7}));
  EXPECT_EQ(timeline.dropped(), 5);
}

TEST(Timeline, KeepsEveryFieldOfAnEvent) {
  Timeline timeline;
  timeline.record({EventKind::kExchangeHop2, 7, 3, 1.5, 2.5, 99});
  const Event event = timeline.events().at(0);
  EXPECT_STREQ(to_string(event.kind), "hop 2");
  EXPECT_EQ(event.step, 7);
  EXPECT_EQ(event.bucket, 3);
  EXPECT_EQ(event.begin_s, 1.5);
  EXPECT_EQ(event.end_s, 2.5);
  EXPECT_EQ(event.bytes, 99);
}

TEST(Timeline, ThreadsMayRecordAndReadAtOnce) {
  Timeline timeline(1000);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&timeline, thread] {
      for (std::int64_t step = 0; step < 2000; ++step) timeline.record({.step = step, .bucket = thread, .bytes = step});
    });
  for (int look = 0; look < 50; ++look) {
    std::map<int, std::int64_t> last;
    for (const Event& event : timeline.events()) {
      EXPECT_EQ(event.bytes, event.step) << "a torn event";
      const auto [seen, is_new] = last.try_emplace(event.bucket, event.step);
      EXPECT_TRUE(is_new || event.step > seen->second) << "events of one thread out of order";
      seen->second = event.step;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(timeline.dropped() + static_cast<std::int64_t>(timeline.events().size()), 8000);
}

TEST(Timeline, RefusesARingOfNothing) {
  EXPECT_THROW(Timeline(0), Error);
  EXPECT_THROW(Timeline(-1), Error);
}

}  // namespace
}  // namespace thinwire::watch
