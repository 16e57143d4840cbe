#include "thinwire/comm/env_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire::comm {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

EnvSettings read(const Variables& variables) {
  return read_env_settings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

void expect_refused(const Variables& variables, const std::vector<std::string>& parts) {
  try {
    read(variables);
    FAIL() << "accepted, want a message with " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"MASTER_ADDR", "node7"},
                          {"MASTER_PORT", "29511"},
                          {"TORCHELASTIC_RUN_ID", "run9"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(EnvSettings, NothingMeansAlone) {
  const EnvSettings settings = read({});
  EXPECT_EQ(settings.launcher, "none");
  EXPECT_EQ(settings.rank, 0);
  EXPECT_EQ(settings.size, 1);
}

TEST(EnvSettings, Torchrun) {
  const EnvSettings settings = read(kTorchrun);
  EXPECT_EQ(settings.launcher, "torchrun");
  EXPECT_EQ(settings.rank, 3);
  EXPECT_EQ(settings.size, 4);
  EXPECT_EQ(settings.local_rank, 1);
  EXPECT_EQ(settings.host, "node7");
  EXPECT_EQ(settings.port, 29511);
  EXPECT_TRUE(settings.agent_hosts_store);
  EXPECT_EQ(settings.job_id, "run9");
  EXPECT_EQ(settings.restart, "2");
}

TEST(EnvSettings, KubernetesOperatorSetsTorchrunsVariablesWithoutAnAgent) {
  const EnvSettings settings =
      read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}});
  EXPECT_EQ(settings.launcher, "environment");
  EXPECT_EQ(settings.rank, 1);
  EXPECT_EQ(settings.local_rank, 0);
  EXPECT_FALSE(settings.agent_hosts_store);
  EXPECT_EQ(settings.job_id, "");
}

TEST(EnvSettings, JobIdOfOursWins) {
  EXPECT_EQ(read(with(kTorchrun, {{"THINWIRE_JOB_ID", "mine"}})).job_id, "mine");
}

TEST(EnvSettings, WorldOfOneNeedsNoAddress) {
  const EnvSettings settings = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(settings.size, 1);
}

const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"PMIX_NAMESPACE", "prterun-a-1234@1"}};

TEST(EnvSettings, OpenMpiOnOneHostNeedsNoAddress) {
  const EnvSettings settings = read(kMpirun);
  EXPECT_EQ(settings.launcher, "Open MPI");
  EXPECT_EQ(settings.rank, 1);
  EXPECT_EQ(settings.size, 2);
  EXPECT_EQ(settings.local_rank, 1);
  EXPECT_EQ(settings.host, "127.0.0.1");
  EXPECT_GE(settings.port, 20'000);
  EXPECT_LT(settings.port, 30'000);
  EXPECT_EQ(read(with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "0"}})).port, settings.port);
  EXPECT_NE(read(with(kMpirun, {{"PMIX_NAMESPACE", "prterun-a-1235@1"}})).port, settings.port);
}

TEST(EnvSettings, OpenMpiOnSeveralHostsNeedsAnAddress) {
  const Variables spread = with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  expect_refused(spread, {"MASTER_ADDR", "mpirun -x"});
  const EnvSettings settings = read(with(spread, {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(settings.host, "node1");
  EXPECT_EQ(settings.port, 29500);
}

TEST(EnvSettings, Mpich) {
  const Variables hydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};
  const EnvSettings settings = read(hydra);
  EXPECT_EQ(settings.launcher, "PMI");
  EXPECT_EQ(settings.rank, 1);
  EXPECT_EQ(settings.size, 3);
  EXPECT_EQ(settings.local_rank, 1);
  EXPECT_EQ(settings.host, "127.0.0.1");
  expect_refused(with(hydra, {{"MPI_LOCALNRANKS", "1"}}), {"MASTER_ADDR"});
}

const Variables kSrun{{"SLURM_PROCID", "5"},   {"SLURM_NTASKS", "8"},
                      {"SLURM_LOCALID", "1"},  {"SLURM_STEP_NODELIST", "gpu[017-018,020]"},
                      {"SLURM_JOB_ID", "777"}, {"SLURM_STEP_ID", "3"}};

TEST(EnvSettings, Slurm) {
  const EnvSettings settings = read(kSrun);
  EXPECT_EQ(settings.launcher, "Slurm");
  EXPECT_EQ(settings.rank, 5);
  EXPECT_EQ(settings.size, 8);
  EXPECT_EQ(settings.local_rank, 1);
  EXPECT_EQ(settings.host, "gpu017");
  EXPECT_EQ(settings.job_id, "777.3");
  EXPECT_NE(read(with(kSrun, {{"SLURM_JOB_ID", "778"}})).port, settings.port);
  EXPECT_EQ(read(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "6"}})).size, 6);
  EXPECT_EQ(read(with(without(kSrun, "SLURM_STEP_NODELIST"), {{"SLURM_NODELIST", "a1,b2"}})).host, "a1");
  EXPECT_EQ(read(with(kSrun, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}})).host, "10.0.0.1");
  expect_refused(without(kSrun, "SLURM_JOB_ID"), {"MASTER_PORT"});
}

TEST(EnvSettings, SlurmsNumberOfTasksIsThatOfTheStep) {
  const Variables step = with(without(kSrun, "SLURM_NTASKS"), {{"SLURM_STEP_NUM_TASKS", "6"}});
  EXPECT_EQ(read(step).size, 6);
  EXPECT_EQ(read(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "6"}})).size, 6);
  expect_refused(with(step, {{"SLURM_STEP_NUM_TASKS", "x"}}), {"SLURM_STEP_NUM_TASKS", "\"x\""});
}

// srun's pmi2 plug-in exports PMI's variables, which do not say where rank 0 is.
TEST(EnvSettings, SlurmWithPmi2NeedsNoAddress) {
  const Variables both = with(kSrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_JOBID", "777.3"}});
  const EnvSettings settings = read(both);
  EXPECT_EQ(settings.rank, 5);
  EXPECT_EQ(settings.size, 8);
  EXPECT_EQ(settings.local_rank, 1);
  EXPECT_EQ(settings.host, "gpu017");
  EXPECT_EQ(settings.port, read(kSrun).port);
  EXPECT_EQ(settings.job_id, "777.3");
  // Hydra inside an allocation: its ranks are not Slurm's tasks.
  expect_refused(with(both, {{"PMI_RANK", "4"}}), {"MASTER_ADDR"});
  expect_refused(with(both, {{"PMI_SIZE", "16"}}), {"MASTER_ADDR"});
  EXPECT_EQ(read(with(both, {{"MPI_LOCALNRANKS", "8"}})).host, "127.0.0.1");
}

TEST(EnvSettings, AShellInAnAllocationIsAlone) {
  const EnvSettings settings = read(without(kSrun, "SLURM_PROCID"));
  EXPECT_EQ(settings.launcher, "none");
  EXPECT_EQ(settings.size, 1);
}

TEST(EnvSettings, FirstHostOfASlurmList) {
  EXPECT_EQ(first_slurm_host("node"), "node");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("node[003-006,9],login1"), "node003");
  EXPECT_EQ(first_slurm_host("node[7]"), "node7");
  EXPECT_EQ(first_slurm_host("rack[1-2]-blade"), "rack1-blade");
  EXPECT_THROW(first_slurm_host("node["), Error);
  EXPECT_THROW(first_slurm_host("node[]"), Error);
}

// The innermost launcher counts: torchrun under srun or mpirun, mpirun in a batch script.
TEST(EnvSettings, OuterLaunchersDoNotMatter) {
  EXPECT_EQ(read(with(kTorchrun, kSrun)).launcher, "torchrun");
  EXPECT_EQ(read(with(kTorchrun, kMpirun)).rank, 3);
  EXPECT_EQ(read(with(kMpirun, kSrun)).launcher, "Open MPI");
}

TEST(EnvSettings, ContradictionsAreErrors) {
  const Variables plain = without(kTorchrun, "TORCHELASTIC_RUN_ID");
  expect_refused(with(plain, kMpirun), {"RANK=3 WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"});
  EXPECT_EQ(read(with(kMpirun, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})).rank, 1);
  expect_refused(with(kMpirun, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), {"PMI_RANK=0"});
}

TEST(EnvSettings, NamesWhatIsMissingOrGarbled) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    expect_refused(without(kTorchrun, name), {name});
  for (const char* bad : {"", "x", "1.5", "-1", "12 ", "99999999999"})
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"})
      expect_refused(with(kTorchrun, {{name, bad}}), {name, "\"" + std::string(bad) + "\""});
  expect_refused(with(kTorchrun, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE"});
  expect_refused(with(kTorchrun, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT"});
  expect_refused(without(kMpirun, "OMPI_COMM_WORLD_SIZE"), {"OMPI_COMM_WORLD_SIZE"});
  expect_refused(without(kSrun, "SLURM_NTASKS"), {"SLURM_NTASKS"});
}

TEST(EnvSettings, Timeout) {
  const auto timeout_of = [](const char* text) {
    return read_timeout_ms([text](const char*) { return std::optional<std::string>(text); });
  };
  EXPECT_EQ(timeout_of("2.5"), 2500);
  EXPECT_EQ(timeout_of("0.1"), 100);
  EXPECT_EQ(timeout_of("1000000"), 1'000'000'000);
  EXPECT_EQ(read_timeout_ms([](const char*) { return std::nullopt; }), std::nullopt);
  for (const char* bad : {"0", "-3", "x", "3s", "nan", "inf", "1e9", "0.09", "1000001"})
    EXPECT_THROW(timeout_of(bad), Error) << bad;
}

}  // namespace
}  // namespace thinwire::comm
