#include "thinwire/base/log.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace thinwire {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_sink({}); }
};

TEST_F(Log, ReachesTheSinkAndNobodyByDefault) {
  log(LogLevel::kError, "nobody listens");
  std::vector<std::string> heard;
  set_log_sink(
      [&](LogLevel level, const std::string& text) { heard.push_back(std::string(to_string(level)) + " " + text); });
  log(LogLevel::kWarning, "one");
  log(LogLevel::kInfo, "two");
  set_log_sink({});
  log(LogLevel::kInfo, "three");
  EXPECT_EQ(heard, (std::vector<std::string>{"warning one", "info two"}));
}

TEST_F(Log, SinkMayLogAndReplaceItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, const std::string&) {
    if (++calls == 1) log(LogLevel::kInfo, "again");
    set_log_sink({});
  });
  log(LogLevel::kInfo, "once");
  log(LogLevel::kInfo, "dropped");
  EXPECT_EQ(calls, 2);
}

TEST_F(Log, ThreadsMayLogWhileTheSinkChanges) {
  std::atomic<int> heard{0};
  const LogSink count = [&](LogLevel, const std::string&) { ++heard; };
  set_log_sink(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log(LogLevel::kInfo, "x");
    });
  for (int i = 0; i < 100; ++i) set_log_sink(count);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard, 2000);
}

}  // namespace
}  // namespace thinwire
