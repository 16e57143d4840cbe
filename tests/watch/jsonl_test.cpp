#include "thinwire/watch/jsonl.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace thinwire::watch {
namespace {

class Jsonl : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path); }
  void TearDown() override { std::filesystem::remove(path); }

  const std::string path =
      (std::filesystem::temp_directory_path() / ("thinwire_jsonl_test." + std::to_string(::getpid()))).string();
};

TEST_F(Jsonl, LinesAreThereAtOnceAndAppended) {
  {
    JsonlWriter writer(path);
    writer.append("{\"a\": 1}");
    EXPECT_EQ(read_text_file(path), "{\"a\": 1}\n");
  }
  JsonlWriter(path).append("{}");
  EXPECT_EQ(read_text_file(path), "{\"a\": 1}\n{}\n");
}

TEST_F(Jsonl, ThreadsNeverMixTheirLines) {
  JsonlWriter writer(path);
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c', 'd'})
    threads.emplace_back([&writer, c] {
      for (int i = 0; i < 100; ++i) writer.append(std::string(500, c));
    });
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> lines;
  std::istringstream text(read_text_file(path));
  for (std::string line; std::getline(text, line);) ++lines[line];
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& [line, count] : lines) {
    EXPECT_EQ(line, std::string(500, line.at(0)));
    EXPECT_EQ(count, 100);
  }
}

TEST_F(Jsonl, AFailedLineIsTakenBackAndReported) {
  JsonlWriter writer(path);
  writer.append("first");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said;
  try {
    writer.append(std::string(200, 'x'));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said, "[watch::JsonlWriter] cannot append a line to " + path + ": File too large");
  writer.append("second");
  EXPECT_EQ(read_text_file(path), "first\nsecond\n");
}

TEST_F(Jsonl, RefusesNewlinesAndFoldersThatDoNotExist) {
  JsonlWriter writer(path);
  EXPECT_THROW(writer.append("a\nb"), Error);
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_THROW(JsonlWriter(path + "/x"), Error);
}

}  // namespace
}  // namespace thinwire::watch
