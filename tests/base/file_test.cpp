#include "thinwire/base/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "thinwire/base/error.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "thinwire_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const char* name) const { return (folder / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
    return found;
  }

  fs::path folder;
};

template <class Call>
std::string refusal(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST_F(File, ChunksAreJoinedAndReplaceWhatWasThere) {
  write_file_atomically(path("f"), "old and longer than the new one");
  const std::string a = "new ";
  const std::string b(200'000, 'b');
  const std::span<const std::byte> chunks[] = {std::as_bytes(std::span(a)), {}, std::as_bytes(std::span(b))};
  write_file_atomically(path("f"), chunks);
  EXPECT_EQ(read_text_file(path("f")), a + b);
  EXPECT_EQ(read_file(path("f")).size(), 200'004U);
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  write_file_atomically(path("f"), "");
  EXPECT_EQ(read_text_file(path("f")), "");
}

// A limit on file size makes write fail as a full disk does.
TEST_F(File, AFailedWriteLeavesTheOldContentAndNoTemporaryFile) {
  write_file_atomically(path("f"), "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string said = refusal(ErrorCode::kIo, [&] { write_file_atomically(path("f"), std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said, "[write_file_atomically] cannot write " + path("f") + ": File too large");
  EXPECT_EQ(read_text_file(path("f")), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(File, AFailedRenameLeavesNoTemporaryFile) {
  fs::create_directory(path("d"));
  refusal(ErrorCode::kIo, [&] { write_file_atomically(path("d"), "x"); });
  EXPECT_EQ(names(), std::vector<std::string>{"d"});
}

TEST_F(File, MissingFolderAndMissingFileAreNamed) {
  EXPECT_NE(refusal(ErrorCode::kIo, [&] { write_file_atomically(path("no/f"), "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(refusal(ErrorCode::kNotFound, [&] { read_file(path("f")); }),
            "[read_file] cannot open " + path("f") + ": No such file or directory");
  refusal(ErrorCode::kIo, [&] { read_file(folder.string()); });
}

TEST_F(File, WhatCannotBeWrittenIsFoundBefore) {
  write_file_atomically(path("f"), "old");
  fs::create_directory(path("d"));
  check_writable(path("f"));
  check_writable(path("new"));
  EXPECT_EQ(read_text_file(path("f")), "old");
  EXPECT_EQ(names().size(), 2u);
  for (const char* name : {"no/f", "d"}) {
    const std::string said = refusal(ErrorCode::kIo, [&] { check_writable(path(name)); });
    EXPECT_NE(said.find(path(name)), std::string::npos) << said;
  }
}

TEST_F(File, WhatALinkLeadsToIsReplacedAndTheLinkStays) {
  const std::string target = path("target"), link = path("link"), dangling = path("dangling");
  write_file_atomically(target, "old");
  ASSERT_EQ(::symlink("target", link.c_str()), 0);
  ASSERT_EQ(::symlink(path("later").c_str(), dangling.c_str()), 0);
  write_file_atomically(link, "new");
  write_file_atomically(dangling, "first");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_text_file(target), "new");
  EXPECT_EQ(read_text_file(path("later")), "first");
}

TEST_F(File, APipeIsWrittenInPlace) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_text_file(pipe); });
  check_writable(pipe);
  write_file_atomically(pipe, "through the pipe");
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(File, OfSeveralWritersOneWins) {
  std::vector<std::thread> writers;
  for (char c : {'a', 'b', 'c'})
    writers.emplace_back([this, c] {
      for (int i = 0; i < 10; ++i) write_file_atomically(path("f"), std::string(10'000, c));
    });
  for (std::thread& writer : writers) writer.join();
  const std::string text = read_text_file(path("f"));
  EXPECT_EQ(text, std::string(10'000, text.at(0)));
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST(PathOfRank, KeepsRanksApart) {
  EXPECT_EQ(path_of_rank("a/run.jsonl", 1, 2), "a/run.1.jsonl");
  EXPECT_EQ(path_of_rank("a.b/run", 0, 2), "a.b/run.0");
  EXPECT_EQ(path_of_rank("a/run.jsonl", 0, 1), "a/run.jsonl");
  EXPECT_EQ(path_of_rank("a/{rank}/run.jsonl", 3, 4), "a/3/run.jsonl");
  EXPECT_EQ(path_of_rank("run.{rank}.jsonl", 0, 1), "run.0.jsonl");
  EXPECT_EQ(path_of_rank("", 1, 2), "");
}

}  // namespace
}  // namespace thinwire
