#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <string>

#include "examples/data/fashion_mnist.hpp"
#include "examples/data/idx_file.hpp"
#include "examples/data/text_corpus.hpp"
#include "tests/examples/synthetic_data.hpp"
#include "thinwire/base/error.hpp"

namespace examples {
namespace {

using thinwire::Error;
using thinwire::ErrorCode;
using namespace thinwire::test;

template <class Call>
std::pair<ErrorCode, std::string> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "no error"};
}

TEST(ReadIdx, ReadsPlainAndGzipAlike) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> values = {1, 2, 3, 250, 5, 6};
  write_bytes(folder / "plain", idx_bytes({2, 3}, values));
  write_gzip(folder / "zipped", idx_bytes({2, 3}, values));
  for (const char* name : {"plain", "zipped"}) {
    const IdxArray array = read_idx(folder / name);
    EXPECT_THAT(array.shape, testing::ElementsAre(2, 3));
    EXPECT_EQ(array.values, values);
  }
}

TEST(ReadIdx, RefusesWhatIsNoIdxFileOfBytes) {
  const TemporaryFolder folder;
  const auto code_of = [&](std::vector<std::uint8_t> bytes) {
    write_bytes(folder / "file", bytes);
    return error_of([&] { read_idx(folder / "file"); }).first;
  };
  std::vector<std::uint8_t> floats = idx_bytes({1}, {0});
  floats[2] = 0x0D;
  EXPECT_EQ(code_of({}), ErrorCode::kCorrupt);
  EXPECT_THAT(error_of([&] { read_idx(folder / "file"); }).second, testing::HasSubstr("an empty file"));
  EXPECT_EQ(code_of({'h', 'e', 'l', 'l', 'o'}), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(floats), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of({0, 0, 8, 3, 0, 0}), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(idx_bytes({3}, {1, 2})), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(idx_bytes({1}, {1, 2})), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {})), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of([&] { read_idx(folder / "absent"); }).first, ErrorCode::kNotFound);
}

TEST(ReadIdx, RefusesATruncatedGzipFile) {
  const TemporaryFolder folder;
  write_gzip(folder / "whole", idx_bytes({4000}, std::vector<std::uint8_t>(4000, 7)));
  std::vector<std::uint8_t> bytes = read_bytes(folder / "whole");
  bytes.resize(bytes.size() - 6);
  write_bytes(folder / "cut", bytes);
  EXPECT_EQ(error_of([&] { read_idx(folder / "cut"); }).first, ErrorCode::kCorrupt);
}

TEST(FashionMnist, ReadsFourFilesAndScalesPixels) {
  const TemporaryFolder folder;
  write_fashion_like(folder.path(), 30, 20);
  const FashionMnist data = read_fashion_mnist(folder.path());
  EXPECT_EQ(data.train.images.sizes(), (std::vector<std::int64_t>{30, 28, 28}));
  EXPECT_EQ(data.test.labels.numel(), 20);
  const std::vector<std::int64_t> positions = {4, 0};
  const ImageBatch batch = images_at(data.train, positions);
  const double byte = data.train.images[4][3][5].item<double>();
  EXPECT_NEAR(batch.pixels[0][3][5].item<double>(), (byte / 255 - 0.2860) / 0.3530, 1e-5);
  EXPECT_EQ(batch.labels[1].item<std::int64_t>(), data.train.labels[0].item<std::int64_t>());
}

TEST(FashionMnist, SaysWhatIsMissingOrDoesNotFit) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { read_fashion_mnist(folder.path()); }).second,
              testing::AllOf(testing::HasSubstr("train-images-idx3-ubyte"), testing::HasSubstr("--data DIR")));
  write_fashion_like(folder.path(), 3, 3);
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx_bytes({2}, {1, 2}));
  EXPECT_EQ(error_of([&] { read_fashion_mnist(folder.path()); }).first, ErrorCode::kCorrupt);
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx_bytes({3}, {1, 2, 10}));
  EXPECT_THAT(error_of([&] { read_fashion_mnist(folder.path()); }).second, testing::HasSubstr("label 10"));
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx_bytes({3, 1}, {1, 2, 3}));
  EXPECT_THAT(error_of([&] { read_fashion_mnist(folder.path()); }).second, testing::HasSubstr("got shape 3 x 1,"));
  write_bytes(folder / "t10k-images-idx3-ubyte", idx_bytes({1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(error_of([&] { read_fashion_mnist(folder.path()); }).second, testing::HasSubstr("got shape 1 x 2 x 3,"));
}

TEST(TextCorpus, SplitsAndNumbersCharacters) {
  const TemporaryFolder folder;
  write_text(folder / "text", 200);
  const TextCorpus corpus = read_text_corpus(folder / "text", 8);
  const std::vector<std::uint8_t> bytes = read_bytes(folder / "text");
  EXPECT_TRUE(std::is_sorted(corpus.characters.begin(), corpus.characters.end()));
  ASSERT_EQ(corpus.train.numel() + corpus.validation.numel(), std::ssize(bytes));
  const at::Tensor all = torch::cat({corpus.train, corpus.validation});
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(static_cast<std::uint8_t>(corpus.characters[all[static_cast<std::int64_t>(i)].item<std::int64_t>()]),
              bytes[i]);
}

TEST(TextCorpus, TargetsAreTheNextCharacters) {
  const at::Tensor tokens = torch::arange(50, torch::kUInt8);
  const std::vector<std::int64_t> starts = {0, 7, 41};
  const TokenBatch batch = windows_at(tokens, starts, 8);
  EXPECT_TRUE(batch.target.equal(batch.input + 1));
  EXPECT_EQ(batch.input[1][0].item<std::int64_t>(), 7);
  EXPECT_EQ(batch.target[2][7].item<std::int64_t>(), 49);  // the last start reaches the last token
  EXPECT_EQ(window_count(tokens, 8), 42);
  EXPECT_THAT(spread_starts(tokens, 8, 1000), testing::SizeIs(42));
}

TEST(TextCorpus, RefusesATextThatIsTooShortAndAFileThatIsMissing) {
  const TemporaryFolder folder;
  write_text(folder / "text", 20);
  EXPECT_EQ(error_of([&] { read_text_corpus(folder / "text", 64); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { read_text_corpus(folder / "absent", 64); }).first, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace examples
