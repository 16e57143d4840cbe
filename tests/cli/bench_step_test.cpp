// The orchestration of `thinwire bench step`, with small programs that speak its protocol instead of training.
#include "thinwire/cli/bench_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/command_line.hpp"
#include "thinwire/base/error.hpp"

namespace thinwire::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers every "run" with steps of fixed length: rank 1 is the slower one and sends more. Appends each turn to a
// journal.
constexpr const char* kWorker = R"sh(#!/bin/sh
echo 'a library greets'
[ -z "$UNAVAILABLE" ] || { echo '{"unavailable": "no torch here"}'; exit 0; }
echo '{"ready": true}'
while read -r run name steps; do
  echo "$RANK $name $steps $OMP_NUM_THREADS" >> "$JOURNAL"
  [ "$name" != "$DIES" ] || [ "$RANK" = 0 ] || { echo 'the reason' >&2; exit 9; }
  i=0; list=""
  while [ $i -lt $steps ]; do list="$list${list:+,}0.$((RANK + 1))"; i=$((i+1)); done
  echo "{\"step_s\": [$list], \"sent_bytes\": ${SENT:-$(((RANK + 1) * 100 * steps))}, \"loss\": ${LOSS:-5.5}, \"stage\": \"${STAGE:-one_bit}\"}"
done
)sh";

class BenchStep : public testing::Test {
 protected:
  void SetUp() override {
    settings_.cpp_program = folder_ + "/cpp";
    settings_.python_program = folder_ + "/python";
    settings_.python = "/bin/sh";
    std::filesystem::create_directories(folder_);
    for (const std::string& file : {settings_.cpp_program, settings_.python_program}) std::ofstream(file) << kWorker;
    chmod(settings_.cpp_program.c_str(), 0755);
    // python -u FILE: the stand-in for the interpreter is a shell, whose -u forbids unset variables.
    for (const char* name : {"UNAVAILABLE", "DIES", "LOSS", "STAGE", "SENT"}) setenv(name, "", 1);
    setenv("JOURNAL", (folder_ + "/journal").c_str(), 1);
    settings_.link_mode = LinkMode::kEmulated;
    settings_.link = "none";
    settings_.rounds = 3;
    settings_.steps_per_round = 2;
    settings_.on_notice = [this](const std::string& text) { notices_ += text + "\n"; };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  schema::BenchReport run(const std::string& contenders) {
    settings_.contenders = chosen_contenders(contenders);
    return bench_step(settings_);
  }

  const std::string folder_ = testing::TempDir() + "thinwire_bench_" + std::to_string(getpid());
  BenchSettings settings_;
  std::string notices_;
};

TEST_F(BenchStep, TakesTheSlowestRankAndTheBusiestLink) {
  const schema::BenchReport report = run("compute,torch-compute,dense,one_bit");
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.link, "none");
  EXPECT_FALSE(report.emulated);
  for (const schema::BenchRow& row : report.rows) {
    EXPECT_DOUBLE_EQ(row.median_s, 0.2) << row.contender;
    EXPECT_EQ(row.sent_bytes, 200) << row.contender;
  }
}

TEST_F(BenchStep, RunsOneContenderAtATimeInRoundsOnEveryRank) {
  run("torch-compute,dense,int4");
  std::vector<std::string> turns[2];
  std::ifstream journal(folder_ + "/journal");
  int rank = 0, threads = 0;
  for (std::string name, steps; journal >> rank >> name >> steps >> threads;) {
    turns[rank].push_back(name + ":" + steps);
    EXPECT_EQ(threads, 1);
  }
  EXPECT_EQ(turns[0], turns[1]);
  const std::vector<std::string> measured(turns[0].begin() + 3, turns[0].end());
  EXPECT_THAT(measured, ElementsAre("torch-compute:1", "torch-compute:2", "dense:1", "dense:2", "int4:1", "int4:2",  //
                                    "dense:1", "dense:2", "int4:1", "int4:2", "torch-compute:1", "torch-compute:2",  //
                                    "int4:1", "int4:2", "torch-compute:1", "torch-compute:2", "dense:1", "dense:2"));
}

TEST_F(BenchStep, LeavesOutWhatIsMissingAndSaysWhy) {
  settings_.cpp_program = folder_ + "/absent";
  const schema::BenchReport report = run("dense,torch-compute");
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].contender, "torch-compute");
  EXPECT_THAT(notices_, HasSubstr("left out: dense: [bench step] no such file: " + folder_ + "/absent\n"));
}

TEST_F(BenchStep, LeavesOutPythonWithoutTorchOrWithoutInterpreter) {
  settings_.python = folder_ + "/no-python";
  EXPECT_EQ(run("dense,torch-compute").rows.size(), 1u);
  EXPECT_THAT(notices_, HasSubstr("left out: torch-compute: cannot start " + folder_ + "/no-python: no such file\n"));
  setenv("UNAVAILABLE", "1", 1);
  EXPECT_THROW(run("dense"), Error) << "nothing is left to run";
  EXPECT_THAT(notices_, HasSubstr("left out: dense: no torch here\n"));
}

TEST_F(BenchStep, DoesNotCompareAnEmulatedLinkWithPlainLoopback) {
  settings_.link = "100mbit";
  const schema::BenchReport report = run("dense,torch-compute,torch-ddp");
  EXPECT_EQ(report.rows.size(), 2u);
  EXPECT_FALSE(report.rows[0].vs_torch_ddp.has_value());
  EXPECT_THAT(notices_, HasSubstr("left out: torch-ddp: an emulated link slows only thinwire\n"));
}

// Nothing is slowed without a limit, so nothing is unfair; only nobody can tell what PyTorch sends over loopback.
TEST_F(BenchStep, ComparesWithPyTorchOnPlainLoopback) {
  setenv("SENT", "null", 1);
  const schema::BenchReport report = run("torch-compute,dense,torch-ddp");
  setenv("SENT", "", 1);
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_TRUE(report.rows[1].vs_torch_ddp.has_value());
  EXPECT_EQ(report.rows[0].sent_bytes, 0);
  EXPECT_EQ(report.rows[2].sent_bytes, std::nullopt);
  EXPECT_THAT(bench_table(report.rows), HasSubstr("0.0000 s" + std::string(10, ' ') + "-"));
}

TEST_F(BenchStep, NamesTheRankThatEndedWithItsLastWords) {
  setenv("DIES", "int4", 1);
  try {
    run("dense,int4");
    FAIL() << "did not notice";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1, ended (exit status 9); its last words:\n"));
    EXPECT_THAT(error.what(), HasSubstr("the reason\n"));
  }
  EXPECT_EQ(processes_with("JOURNAL=" + folder_), 0);
}

TEST_F(BenchStep, RefusesARowThatDoesNotMeasureWhatItSays) {
  setenv("STAGE", "warm_up", 1);
  EXPECT_THROW(run("one_bit"), Error);
  setenv("STAGE", "", 1);
  setenv("LOSS", "null", 1);
  EXPECT_THROW(run("dense"), Error);
}

TEST(BenchStepCommand, ChecksBeforeItMeasuresThatItsResultCanBeWritten) {
  const Ended ended = run_thinwire({"bench", "step", "--link", "none", "--json", "/proc/no-such-folder/step.json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, HasSubstr("/proc/no-such-folder/step.json"));
}

TEST(BenchStepCommand, RefusesAnUnknownContender) {
  const Ended ended = run_thinwire({"bench", "step", "--contenders", "dense,ddp"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("\"ddp\""));
}

}  // namespace
}  // namespace thinwire::cli
