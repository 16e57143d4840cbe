// `thinwire run` as its users see it: statuses, messages, what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/command_line.hpp"

namespace thinwire::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Ended run_shell(int ranks, const std::string& script, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments{"run", "-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (const char* word : {"--", "sh", "-c"}) arguments.emplace_back(word);
  arguments.push_back(script);
  return run_thinwire(arguments);
}

// A variable that only the processes of this test carry.
std::string mark(const char* test) {
  return "THINWIRE_TEST_MARK=" + std::string(test) + std::to_string(getpid());
}

TEST(Run, GivesEveryRankTheVariablesOfTorchrun) {
  const Ended ended = run_shell(3,
                                "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE "
                                "$ROLE_RANK $ROLE_WORLD_SIZE $MASTER_ADDR $GLOO_SOCKET_IFNAME");
  EXPECT_EQ(ended.status, 0) << ended.err;
  for (const char* rank : {"0", "1", "2"}) {
    const std::string r = rank;
    EXPECT_THAT(ended.out, HasSubstr("[" + r + "] " + r + " " + r + " 3 3 0 1 " + r + " 3 127.0.0.1 lo\n"));
  }
}

TEST(Run, GivesAllRanksTheSamePortAndRunId) {
  const Ended ended = run_shell(2, "echo $MASTER_PORT $TORCHELASTIC_RUN_ID");
  std::istringstream lines(ended.out);
  std::string prefix, port[2], id[2];
  for (int i = 0; i < 2; ++i) lines >> prefix >> port[i] >> id[i];
  EXPECT_EQ(port[0], port[1]);
  EXPECT_EQ(id[0], id[1]);
  EXPECT_GT(std::stoi(port[0]), 1023);
  EXPECT_FALSE(id[0].empty());
}

TEST(Run, PassesTimeoutAndVariablesOn) {
  const Ended ended =
      run_shell(1, "echo $THINWIRE_TIMEOUT_S $A $B", {"--timeout", "7.5", "--env", "A=x=y", "--env", "B=2"});
  EXPECT_EQ(ended.out, "[0] 7.5 x=y 2\n");
}

TEST(Run, KeepsLinesWholeAndStreamsApart) {
  const Ended ended = run_shell(4,
                                "i=0; while [ $i -lt 300 ]; do printf 'rank %s ' $RANK; printf 'line %s end\\n' $i; "
                                "i=$((i+1)); done; echo e >&2");
  std::istringstream lines(ended.out);
  int count = 0, next[4] = {0, 0, 0, 0};
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_GE(line.size(), 5u);
    const int rank = line[1] - '0';
    ASSERT_TRUE(rank >= 0 && rank < 4) << line;
    EXPECT_EQ(line, "[" + std::to_string(rank) + "] rank " + std::to_string(rank) + " line " +
                        std::to_string(next[rank]++) + " end");
  }
  EXPECT_EQ(count, 1200);
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 4) << ended.err;
}

TEST(Run, HandsOnALastLineWithoutNewline) {
  EXPECT_EQ(run_shell(1, "printf end").out, "[0] end\n");
}

TEST(Run, WritesALogPerRank) {
  const std::string folder = testing::TempDir() + "thinwire_logs_" + std::to_string(getpid()) + "/new";
  EXPECT_EQ(run_shell(2, "echo rank $RANK", {"--log-dir", folder}).status, 0);
  EXPECT_EQ(file_text(folder + "/rank0.log"), "rank 0\n");
  EXPECT_EQ(file_text(folder + "/rank1.log"), "rank 1\n");
  std::filesystem::remove_all(std::filesystem::path(folder).parent_path());
}

TEST(Run, ReturnsTheStatusOfTheRankThatFailedFirstAndNamesIt) {
  const Ended ended = run_shell(3, "case $RANK in 1) exit 3;; *) sleep 0.5; exit 4;; esac");
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.err, HasSubstr("thinwire run: rank 1 failed first: exit status 3\n"));
  EXPECT_THAT(ended.err, Not(HasSubstr("SIGKILL")));
}

TEST(Run, NamesTheSignalThatKilledARank) {
  const Ended ended = run_shell(2, "[ $RANK = 0 ] || kill -9 $$; sleep 0.5");
  EXPECT_EQ(ended.status, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("rank 1 failed first: killed by SIGKILL\n"));
}

TEST(Run, KillsWhoStillRunsAfterTheFirstSurvivorHasEnded) {
  const std::string variable = mark("survivor");
  const Ended ended = run_shell(3, "case $RANK in 0) exit 5;; 1) sleep 0.3; exit 0;; *) trap '' TERM; sleep 300;; esac",
                                {"--env", variable});
  EXPECT_EQ(ended.status, 5);
  EXPECT_THAT(ended.err, HasSubstr("SIGKILL to rank 2: still running 2 s after rank 1 had ended\n"));
  EXPECT_EQ(processes_with(variable), 0);
}

TEST(Run, KillsSurvivorsThatDoNotEndWithinTheirTimeout) {
  const Ended ended = run_shell(2, "[ $RANK = 0 ] && exit 6; sleep 300", {"--timeout", "0.5"});
  EXPECT_EQ(ended.status, 6);
  EXPECT_THAT(ended.err, HasSubstr("SIGKILL to rank 1: still running 5.5 s after that\n"));
}

TEST(Run, EndsWhatRanksLeftRunning) {
  const std::string variable = mark("orphan");
  EXPECT_EQ(run_shell(2, "setsid sleep 300 & sleep 300 & exit 0", {"--env", variable}).status, 0);
  EXPECT_EQ(processes_with(variable), 0);
}

TEST(Run, SaysWhichProgramIsMissing) {
  const Ended ended = run_thinwire({"run", "-n", "2", "--", "./nothing"});
  EXPECT_EQ(ended.status, 127);
  EXPECT_EQ(ended.err, "thinwire run: cannot start ./nothing: no such file; rank 0 was not started\n");
}

TEST(Run, SaysWhatCannotBeExecuted) {
  const Ended ended = run_thinwire({"run", "-n", "2", "--", "/etc/passwd"});
  EXPECT_EQ(ended.status, 126);
  EXPECT_EQ(ended.err, "thinwire run: cannot start /etc/passwd: not executable; rank 0 was not started\n");
}

class Interrupted : public testing::TestWithParam<int> {};

TEST_P(Interrupted, LeavesNothingBehind) {
  const std::string variable = mark("interrupted");
  CommandLine command({"run", "-n", "2", "--env", variable, "--", "sh", "-c",
                       "trap '' TERM; setsid sleep 300 & echo ready; while :; do sleep 1; done"});
  ASSERT_TRUE(command.wait_for("[0] ready") && command.wait_for("[1] ready"));
  EXPECT_GE(processes_with(variable), 4);
  kill(command.pid(), GetParam());
  const Ended ended = command.wait();
  EXPECT_EQ(ended.status, 128 + GetParam());
  EXPECT_EQ(processes_with(variable), 0);
}

INSTANTIATE_TEST_SUITE_P(Run, Interrupted, testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& tested) { return signal_name(tested.param); });

TEST(Run, LetsRanksEndByThemselvesWhenInterrupted) {
  CommandLine command(
      {"run", "-n", "1", "--", "sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"});
  ASSERT_TRUE(command.wait_for("[0] ready"));
  kill(command.pid(), SIGINT);
  const Ended ended = command.wait();
  EXPECT_THAT(ended.out, HasSubstr("[0] saved\n"));
  EXPECT_THAT(ended.err, Not(HasSubstr("SIGKILL")));
}

TEST(Run, LeavesNoRankWhenItIsKilledItself) {
  const std::string variable = mark("killed");
  CommandLine command({"run", "-n", "2", "--env", variable, "--", "sh", "-c", "sleep 300 & echo ready; sleep 300"});
  ASSERT_TRUE(command.wait_for("[0] ready") && command.wait_for("[1] ready"));
  EXPECT_GE(processes_with(variable), 4);
  kill(command.pid(), SIGKILL);
  EXPECT_EQ(command.wait().status, 128 + SIGKILL);
  EXPECT_TRUE(becomes_true([&] { return processes_with(variable) == 0; }));
}

TEST(Run, EndsWhenNobodyReadsItsOutput) {
  const std::string variable = mark("reader");
  const std::string script = std::string(THINWIRE_COMMAND) + " run -n 2 --env " + variable + " -- yes | head -n 1";
  const Process shell = start_process({{"sh", "-c", script}, environment_now(), "", false});
  int status = 0;
  waitpid(shell.pid, &status, 0);
  EXPECT_TRUE(becomes_true([&] { return processes_with(variable) == 0; }));
}

struct WrongUsage {
  std::vector<std::string> arguments;
  std::string says;
};
class Wrong : public testing::TestWithParam<WrongUsage> {};

TEST_P(Wrong, IsOneLineAndStatusTwo) {
  const Ended ended = run_thinwire(GetParam().arguments);
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.err, StartsWith("thinwire"));
  EXPECT_THAT(ended.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ended.err, HasSubstr("--help\n"));
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

INSTANTIATE_TEST_SUITE_P(
    Usage, Wrong,
    testing::Values(WrongUsage{{}, "no verb"}, WrongUsage{{"walk"}, "no such verb: walk"},
                    WrongUsage{{"bench"}, "bench step"}, WrongUsage{{"run", "--", "true"}, "--ranks is required"},
                    WrongUsage{{"run", "-n", "0", "--", "true"}, "--ranks"},
                    WrongUsage{{"run", "-n", "x", "--", "true"}, "x"}, WrongUsage{{"run", "-n", "2"}, "after --"},
                    WrongUsage{{"run", "-n", "2", "--"}, "after --"},
                    WrongUsage{{"run", "-n", "2", "--what", "--", "true"}, "--what"},
                    WrongUsage{{"run", "-n", "2", "--link", "fast", "--", "true"}, "\"fast\""},
                    WrongUsage{{"run", "-n", "2", "--link", "1gbit,x", "--", "true"}, "\"x\""},
                    WrongUsage{{"run", "-n", "2", "--link", "1gbit,1ms", "--link-mode", "namespaces", "--", "true"},
                               "a rate without a latency"},
                    WrongUsage{{"run", "-n", "2", "--link-mode", "x", "--", "true"}, "link-mode"},
                    WrongUsage{{"run", "-n", "2", "--timeout", "-1", "--", "true"}, "--timeout"},
                    WrongUsage{{"run", "-n", "2", "--timeout", "0.05", "--", "true"}, "--timeout"},
                    WrongUsage{{"run", "-n", "2", "--timeout", "2e6", "--", "true"}, "--timeout"},
                    WrongUsage{{"run", "-n", "2", "--timeout", "nan", "--", "true"}, "--timeout"},
                    WrongUsage{{"run", "-n", "2", "--link", "", "--", "true"}, "--link"},
                    WrongUsage{{"run", "-n", "2", "--log-dir", "", "--", "true"}, "--log-dir"},
                    WrongUsage{{"run", "-n", "2", "--link-mode", "namespaces", "--", "true"}, "without --link"},
                    WrongUsage{{"run", "-n", "2", "--", ""}, "no program"},
                    WrongUsage{{"run", "-n", "2", "--env", "A", "--", "true"}, "NAME=VALUE"}));

class Help : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Help, BeginsWithOneSentenceAndOneExample) {
  std::vector<std::string> arguments = GetParam();
  arguments.emplace_back("--help");
  const Ended ended = run_thinwire(arguments);
  EXPECT_EQ(ended.status, 0);
  std::istringstream lines(ended.out);
  std::string sentence, example;
  std::getline(lines, sentence);
  std::getline(lines, example);
  EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '.'), 1) << sentence;
  EXPECT_EQ(sentence.back(), '.');
  EXPECT_THAT(example, StartsWith("Example: thinwire "));
}

INSTANTIATE_TEST_SUITE_P(Usage, Help,
                         testing::Values(std::vector<std::string>{}, std::vector<std::string>{"run"},
                                         std::vector<std::string>{"bench", "step"}));

TEST(Version, SaysWhatIsCompiledInAndWhyTheRestIsNot) {
  const Ended ended = run_thinwire({"--version"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, StartsWith("thinwire "));
  for (const char* part : {"torch", "training half", "CUDA", "MPI", "Python"}) {
    const std::size_t at = ended.out.find(std::string("\n") + part);
    ASSERT_NE(at, std::string::npos) << part;
    const std::string line = ended.out.substr(at + 1, ended.out.find('\n', at + 1) - at - 1);
    const bool absent = line.find(" no:") != std::string::npos || line.find(" none:") != std::string::npos;
    EXPECT_TRUE(!absent || line.size() - line.find(':') > 5) << "no reason: " << line;
  }
}

}  // namespace
}  // namespace thinwire::cli
