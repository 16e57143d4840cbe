// The arithmetic and the table of `thinwire bench step`.
#include "thinwire/cli/bench_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "thinwire/base/error.hpp"

namespace thinwire::cli {
namespace {

using schema::BenchRow;
using testing::HasSubstr;

std::vector<BenchRow> example() {
  return bench_rows({{"compute", {0.30, 0.20, 0.25}, 0},
                     {"torch-compute", {0.40, 0.40, 0.41}, 0},
                     {"one_bit", {0.28, 0.26, 0.30, 0.26}, 1.4e6},
                     {"dense", {0.22, 0.24, 0.26}, 4.3e7},
                     {"torch-ddp", {0.8, 0.9, 0.7}, 4.35e7}});
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(BenchRows, KeepOrderMedianMinimumMaximumAndBytes) {
  const std::vector<BenchRow> rows = example();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[2].contender, "one_bit");
  EXPECT_DOUBLE_EQ(rows[2].median_s, 0.27);
  EXPECT_DOUBLE_EQ(rows[2].min_s, 0.26);
  EXPECT_DOUBLE_EQ(rows[2].max_s, 0.30);
  EXPECT_EQ(rows[2].sent_bytes, 1'400'000);
}

TEST(BenchRows, ExposedIsAgainstTheComputeRowOfTheSameLanguageAndNeverNegative) {
  const std::vector<BenchRow> rows = example();
  EXPECT_NEAR(rows[2].exposed_s.value(), 0.27 - 0.25, 1e-12);
  EXPECT_EQ(rows[3].exposed_s.value(), 0) << "dense was faster than compute only";
  EXPECT_NEAR(rows[4].exposed_s.value(), 0.8 - 0.40, 1e-12);
}

TEST(BenchRows, RatiosAreSpeedsAgainstTorchDdpAndTheFasterComputeRow) {
  const std::vector<BenchRow> rows = example();
  EXPECT_DOUBLE_EQ(rows[2].vs_torch_ddp.value(), 0.8 / 0.27);
  EXPECT_DOUBLE_EQ(rows[2].vs_compute.value(), 0.25 / 0.27);
  EXPECT_DOUBLE_EQ(rows[4].vs_torch_ddp.value(), 1);
  EXPECT_DOUBLE_EQ(rows[4].vs_compute.value(), 0.25 / 0.8);
  EXPECT_DOUBLE_EQ(rows[1].vs_compute.value(), 0.25 / 0.40);
}

TEST(BenchRows, FasterComputeRowMayBeThatOfPython) {
  const std::vector<BenchRow> rows = bench_rows({{"compute", {0.5}, 0}, {"torch-compute", {0.25}, 0}});
  EXPECT_DOUBLE_EQ(rows[0].vs_compute.value(), 0.5);
  EXPECT_DOUBLE_EQ(rows[1].vs_compute.value(), 1);
}

TEST(BenchRows, WhatHasNothingToCompareWithStaysEmpty) {
  const std::vector<BenchRow> rows = bench_rows({{"torch-compute", {0.4}, 0}, {"one_bit", {0.27}, 1e6}});
  EXPECT_FALSE(rows[1].exposed_s.has_value());
  EXPECT_FALSE(rows[1].vs_torch_ddp.has_value());
  EXPECT_DOUBLE_EQ(rows[1].vs_compute.value(), 0.4 / 0.27);
}

TEST(BenchTable, HasTheColumnsInOrderAndOneLinePerRow) {
  std::istringstream table(bench_table(example()));
  std::string line;
  std::getline(table, line);
  std::size_t at = 0;
  for (const char* title :
       {"contender", "median", "min", "max", "exposed", "sent/step", "vs torch-ddp", "vs compute"}) {
    const std::size_t found = line.find(title, at);
    ASSERT_NE(found, std::string::npos) << title;
    at = found + 1;
  }
  const std::size_t width = line.size();
  int rows = 0;
  for (; std::getline(table, line); ++rows) EXPECT_EQ(line.size(), width) << line;
  EXPECT_EQ(rows, 5);
}

TEST(BenchTable, PrintsNumbersWithUnitsAndDashesForWhatIsMissing) {
  EXPECT_THAT(bench_table(example()), HasSubstr("one_bit        0.2700 s  0.2600 s  0.3000 s  0.0200 s     1.4 MB"));
  EXPECT_THAT(bench_table(example()), HasSubstr("2.96x       0.93x\n"));
  EXPECT_THAT(bench_table(bench_rows({{"int4", {1}, 5e6}})), HasSubstr("-"));
}

TEST(ReadableBytes, RoundsToThreeDigits) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(312), "312 B");
  EXPECT_EQ(readable_bytes(999.7), "1 kB");
  EXPECT_EQ(readable_bytes(1'362'000), "1.36 MB");
  EXPECT_EQ(readable_bytes(43.5e6), "43.5 MB");
}

TEST(Contenders, AreChosenInTheOrderOfTheTableEachOnce) {
  std::vector<std::string> names;
  for (const Contender& one : chosen_contenders("torch-ddp,compute,one_bit,compute")) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"compute", "one_bit", "torch-ddp"}));
  EXPECT_EQ(chosen_contenders("").size(), 9u);
}

TEST(Contenders, UnknownOnesAreRefusedNamingTheKnown) {
  try {
    chosen_contenders("dense,ddp");
    FAIL() << "accepted ddp";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"ddp\""));
    EXPECT_THAT(error.what(), HasSubstr("torch-powersgd1"));
  }
}

}  // namespace
}  // namespace thinwire::cli
