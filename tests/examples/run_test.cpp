// The examples as a user starts them: alone, on two ranks, interrupted, and with wrong arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/examples/program.hpp"
#include "tests/examples/synthetic_data.hpp"

namespace thinwire::test {
namespace {

using nlohmann::json;

const std::string kTinyShakespeare = std::string(THINWIRE_SOURCE_DIR) + "/../shared/data/tinyshakespeare.txt";
const std::string kFashionMnist = "/usr/share/datasets/fashion-mnist";

Arguments two_ranks(const Arguments& command) {
  return Arguments{THINWIRE_COMMAND, "run", "-n", "2", "--timeout", "60", "--"} + command;
}

// The result that `command` wrote; fails the test when it did not end well.
json result_of(const Arguments& command) {
  const TemporaryFolder folder;
  const Finished finished = run_program(command + Arguments{"--result", folder / "result.json"});
  EXPECT_EQ(finished.status, 0) << finished.err;
  return json_in(folder / "result.json");
}

Arguments small_vit(const std::string& data, int steps) {
  return Arguments{THINWIRE_FASHION_VIT, "--data", data, "--steps", std::to_string(steps)} +
         words("--layers 1 --width 32 --heads 2 --micro-batch 16 --lr-warmup-steps 4 --lr 3e-3");
}

TEST(CharGpt, LearnsAndReports) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  const json result =
      result_of(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 60) + Arguments{"--lr", "1e-2", "--eval-every", "20"});
  EXPECT_EQ(result["steps"], 60);
  EXPECT_LT(result["val_loss"].get<double>(), 1.0);  // a guess among its 15 characters: 2.7
  ASSERT_EQ(result["evaluations"].size(), 3);
  EXPECT_EQ(result["evaluations"][2]["val_loss"], result["val_loss"]);
}

// Same weights, same joined batches: torch's AdamW in one process, ours alone, ours on two ranks.
TEST(CharGpt, AgreesWithPlainLibTorchOnTheJoinedBatch) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  const Arguments plain = small_gpt(THINWIRE_CHAR_GPT_PLAIN, folder / "text", 30) + Arguments{"--micro-batch", "8"};
  const Arguments ours = small_gpt(THINWIRE_CHAR_GPT, folder / "text", 30);
  const double expected = result_of(plain)["val_loss"];
  EXPECT_NEAR(result_of(two_ranks(ours))["val_loss"].get<double>(), expected, 1e-3);
  EXPECT_NEAR(result_of(ours + Arguments{"--micro-batch", "8"})["val_loss"].get<double>(), expected, 1e-3);
}

// Stopped after 7 of 16 steps, in a new process, before and after the freeze: bit for bit the same result.
TEST(CharGpt, ResumesToTheSameResult) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  for (const char* freeze : {"5", "12"}) {
    const Arguments run = small_gpt(THINWIRE_CHAR_GPT, folder / "text", 16) +
                          Arguments{"--optimizer", "one_bit", "--freeze-step", freeze, "--accumulate", "2"};
    const Arguments saved = {"--checkpoint", folder / freeze};
    const json whole = result_of(two_ranks(run));
    ASSERT_EQ(run_program(two_ranks(run + saved + Arguments{"--stop-after", "7"})).status, 0);
    const Finished second = run_program(two_ranks(run + saved + Arguments{"--resume", "--result", folder / "resumed"}));
    ASSERT_EQ(second.status, 0) << second.err;
    // A run from the start would end with the same numbers, so that only its progress tells it from one that went on.
    EXPECT_THAT(second.err, testing::AllOf(testing::HasSubstr(" 8/16"), testing::Not(testing::HasSubstr(" 1/16"))));
    const json resumed = json_in(folder / "resumed");
    EXPECT_EQ(resumed["val_loss"], whole["val_loss"]) << "freeze at " << freeze;
    EXPECT_EQ(resumed["train_loss"], whole["train_loss"]);
    EXPECT_EQ(resumed["frozen_at"], whole["frozen_at"]);
    EXPECT_EQ(resumed["steps"], 16);
  }
}

TEST(CharGpt, RefusesToResumeInAnotherOrderOfSamples) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  const Arguments run = small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--checkpoint", folder / "saved"};
  result_of(run);
  for (const char* flag : {"--seed", "--micro-batch", "--accumulate"}) {
    const Finished finished = run_program(run + Arguments{"--resume", flag, "3"});
    EXPECT_EQ(finished.status, 1);
    EXPECT_THAT(finished.err, testing::HasSubstr(std::string(flag) + "; got 3, want "));
  }
}

TEST(FashionVit, LearnsOnTwoRanksWithEachOptimizer) {
  const TemporaryFolder folder;
  write_fashion_like(folder.path(), 640, 100);
  for (const char* optimizer : {"adamw", "one_bit"}) {
    const json result = result_of(
        two_ranks(small_vit(folder.path(), 40) + Arguments{"--optimizer", optimizer, "--freeze-step", "20", "--log",
                                                           folder / "log.jsonl", "--trace", folder / "trace.json"}));
    EXPECT_GT(result["accuracy"].get<double>(), 0.9) << optimizer;  // a guess: 0.1
    EXPECT_GT(result["sent_bytes"].get<std::int64_t>(), 0);
    for (const char* file : {"log.0.jsonl", "log.1.jsonl", "trace.0.json", "trace.1.json"})
      EXPECT_TRUE(std::filesystem::exists(folder / file)) << file;
  }
}

TEST(FashionVit, SaysWhenTheTargetWasReached) {
  const TemporaryFolder folder;
  write_fashion_like(folder.path(), 640, 100);
  const Arguments run = small_vit(folder.path(), 40) + Arguments{"--eval-every", "10"};
  EXPECT_GT(result_of(run + Arguments{"--target-accuracy", "0.2"})["seconds_to_target"].get<double>(), 0.0);
  EXPECT_TRUE(result_of(run)["seconds_to_target"].is_null());
}

// One line on stderr that starts with the program's name and holds `text`; nothing on stdout.
void expect_refusal(const Arguments& command, int status, const std::string& text) {
  const Finished finished = run_program(command);
  EXPECT_EQ(finished.status, status) << finished.err;
  const std::string name = std::filesystem::path(command[0]).filename().string();
  EXPECT_THAT(finished.err, testing::AllOf(testing::StartsWith(name + ": "), testing::HasSubstr(text)));
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  EXPECT_EQ(finished.out, "");
}

TEST(Examples, RefuseWrongArgumentsWithOneMessage) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  expect_refusal({THINWIRE_CHAR_GPT}, 2, "--text");
  expect_refusal(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--optimizer", "adam"}, 2, "--optimizer");
  expect_refusal(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--resume"}, 2, "--checkpoint");
  expect_refusal(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--codec", "int5"}, 1, "int5");
  expect_refusal(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--heads", "5"}, 1, "heads");
  expect_refusal(small_gpt(THINWIRE_CHAR_GPT, folder / "absent", 4), 1, "absent");
  expect_refusal(small_vit(folder.path(), 4), 1, "dataset-fashion-mnist");
  expect_refusal(small_vit(folder.path(), 0), 2, "--steps");
}

TEST(Examples, RefuseNumbersThatDoNotFit) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  const Arguments gpt = small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4);
  expect_refusal(gpt + Arguments{"--steps", "0"}, 2, "--steps: got 0, want a whole number from 1 to 1099511627776");
  expect_refusal(gpt + Arguments{"--window", "0"}, 2, "--window: got 0, want a whole number from 1");
  expect_refusal(gpt + Arguments{"--steps", "99999999999999999999"}, 2, "--steps: got 99999999999999999999, want");
  expect_refusal(gpt + Arguments{"--seed", "-1"}, 2, "--seed: got -1, want a whole number from 0");
  expect_refusal(gpt + Arguments{"--lr", "nan"}, 2, "--lr: got nan, want a number of at least 0");
  expect_refusal(gpt + Arguments{"--lr", "-1"}, 2, "--lr: got -1, want a number of at least 0");
  expect_refusal(gpt + Arguments{"--checkpoint=", "--resume"}, 2, "--checkpoint= has no value");
  expect_refusal(gpt + Arguments{"--checkpoint", "", "--resume"}, 2, "--checkpoint: got an empty name");
}

// Before the first step, since the last one may be hours later.
TEST(Examples, RefuseFilesThatCannotBeWrittenBeforeTraining) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  write_fashion_like(folder.path(), 640, 100);
  const std::string absent = folder / "absent/file";
  for (const Arguments& run : {small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4), small_vit(folder.path(), 4)}) {
    for (const char* flag : {"--result", "--trace", "--log"})
      expect_refusal(run + Arguments{flag, absent}, 2, std::string(flag) + ": [write_file_atomically] cannot create");
    for (const Arguments& resume : {Arguments{}, Arguments{"--resume"}})
      expect_refusal(run + Arguments{"--checkpoint", folder / "text"} + resume, 2, "--checkpoint " + (folder / "text"));
  }
  const Arguments plain = small_gpt(THINWIRE_CHAR_GPT_PLAIN, folder / "text", 4);
  expect_refusal(plain + Arguments{"--result", absent}, 2, "--result: ");
}

// A file that only one rank writes: the others end with it.
TEST(Examples, EndOnAllRanksWhenOneCannotWrite) {
  const TemporaryFolder folder;
  write_text(folder / "text", 2000);
  const Finished finished = run_program(
      two_ranks(small_gpt(THINWIRE_CHAR_GPT, folder / "text", 4) + Arguments{"--result", folder / "absent/file"}));
  EXPECT_EQ(finished.status, 2);
  EXPECT_THAT(finished.err, testing::AllOf(testing::HasSubstr("char_gpt: --result: "),
                                           testing::HasSubstr("another rank cannot write its files"),
                                           testing::Not(testing::HasSubstr("step "))));
}

TEST(CharGpt, TinyShakespeare) {
  if (!std::filesystem::exists(kTinyShakespeare)) GTEST_SKIP() << "no " << kTinyShakespeare;
  const json result = result_of(two_ranks({THINWIRE_CHAR_GPT, "--text", kTinyShakespeare, "--steps", "20",
                                           "--lr-warmup-steps", "5", "--eval-windows", "64"}));
  EXPECT_LT(result["val_loss"].get<double>(), 3.6);  // a guess among 65 characters: 4.17
}

TEST(FashionVit, FashionMnist) {
  if (!std::filesystem::exists(kFashionMnist)) GTEST_SKIP() << "no " << kFashionMnist;
  const json result = result_of(two_ranks({THINWIRE_FASHION_VIT, "--optimizer", "one_bit", "--steps", "20",
                                           "--lr-warmup-steps", "5", "--micro-batch", "32"}));
  EXPECT_GT(result["accuracy"].get<double>(), 0.3);  // a guess: 0.1
}

}  // namespace
}  // namespace thinwire::test
