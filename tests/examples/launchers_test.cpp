// The same program under every launcher that docs/cluster.md names: torchrun, mpirun, srun, and by hand.
// Ranks agree on the batch by (seed, step), so that every launcher must lead to the same loss, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/examples/program.hpp"
#include "tests/examples/synthetic_data.hpp"

namespace thinwire::test {
namespace {

using nlohmann::json;

constexpr int kSteps = 12;

// Whatever started this test must not look like the launcher under test.
Arguments with_variables(const Arguments& variables) {
  Arguments command = {"/usr/bin/env"};
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"})
    command.insert(command.end(), {"-u", name});
  return command + Arguments{"THINWIRE_TIMEOUT_S=60", "OMP_NUM_THREADS=1"} + variables;
}

std::string on_path(const std::string& name) {
  std::istringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return "";
}

class Launchers : public testing::Test {
 protected:
  Launchers() { write_text(folder_ / "text", 2000); }

  Arguments training() const {
    return small_gpt(THINWIRE_CHAR_GPT, folder_ / "text", kSteps) +
           Arguments{"--optimizer", "one_bit", "--freeze-step", "6", "--result", folder_ / "result.json"};
  }

  // What the job wrote whose processes `commands` start, all at once. Their output is added to output_.
  json run(const std::vector<Arguments>& commands) {
    const std::string result = folder_ / "result.json";
    std::filesystem::remove(result);
    std::vector<std::future<Finished>> jobs;
    for (const Arguments& command : commands)
      jobs.push_back(std::async(std::launch::async, [&command] { return run_program(command); }));
    for (auto& job : jobs) {
      const Finished finished = job.get();
      EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
      output_ += finished.out + finished.err;
    }
    return json_in(result);
  }

  void expect_two_ranks_that_agree(const std::vector<Arguments>& commands) {
    const json result = run(commands);
    const json expected = run({with_variables({THINWIRE_COMMAND, "run", "-n", "2", "--"}) + training()});
    for (const char* name : {"ranks", "steps", "val_loss", "train_loss", "frozen_at"})
      EXPECT_EQ(result[name], expected[name]) << name;
    // A run that was resumed has also agreed on a checkpoint.
    const auto sent = expected["sent_bytes"].get<double>();
    EXPECT_NEAR(result["sent_bytes"].get<double>(), sent, 1e-3 * sent);
    EXPECT_EQ(expected["ranks"], 2);
    EXPECT_EQ(expected["steps"], kSteps);
  }

  // Two processes, as a launcher whose variables are `common` and `rank_name` would start them.
  std::vector<Arguments> two_processes(const std::string& rank_name, const Arguments& common) const {
    std::vector<Arguments> commands;
    for (const char* rank : {"0", "1"})
      commands.push_back(with_variables(common + Arguments{rank_name + "=" + rank}) + training());
    return commands;
  }

  TemporaryFolder folder_;
  std::string output_;
};

TEST_F(Launchers, ByHandIsAWorldOfOne) {
  const json result = run({with_variables({}) + training()});
  EXPECT_EQ(result["ranks"], 1);
  EXPECT_EQ(result["sent_bytes"], 0);
}

TEST_F(Launchers, Torchrun) {
  expect_two_ranks_that_agree({with_variables({THINWIRE_PYTHON, "-m", "torch.distributed.run", "--standalone",
                                               "--nproc-per-node", "2", "--no-python"}) +
                               training()});
}

// All ranks fail after half of the steps; the agent starts them again, and they go on from their checkpoint.
TEST_F(Launchers, TorchrunRestartsFromTheCheckpoint) {
  const std::string script =
      "if [ \"$TORCHELASTIC_RESTART_COUNT\" = 0 ]; then \"$@\" --stop-after 8; exit 1; else exec \"$@\"; fi";
  expect_two_ranks_that_agree(
      {with_variables({THINWIRE_PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                       "--max-restarts", "1", "--no-python", "/bin/sh", "-c", script, "rank"}) +
       training() + Arguments{"--checkpoint", folder_ / "saved", "--resume"}});
  EXPECT_THAT(output_, testing::HasSubstr(" 9/12"));  // the first line of progress after the restart
}

// The variables let Open MPI run as root and put two ranks on one core; Hydra needs neither.
TEST_F(Launchers, Mpirun) {
  const std::string mpirun = on_path("mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun (apt-get install openmpi-bin)";
  expect_two_ranks_that_agree(
      {with_variables({"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                       "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
                       mpirun, "-n", "2"}) +
       training()});
}

// A Slurm needs a controller, so only its variables: as srun sets them in a step of two tasks inside a larger job.
TEST_F(Launchers, Srun) {
  expect_two_ranks_that_agree(
      two_processes("SLURM_PROCID", {"SLURM_NTASKS=8", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=localhost",
                                     "SLURM_JOB_ID=" + std::to_string(getpid()), "SLURM_STEP_ID=0"}));
}

// As Hydra (MPICH, Intel MPI) sets them; both processes are children of this one.
TEST_F(Launchers, Hydra) {
  expect_two_ranks_that_agree(two_processes("PMI_RANK", {"PMI_SIZE=2", "MPI_LOCALNRANKS=2"}));
}

// As the Kubernetes training operator sets them.
TEST_F(Launchers, VariablesOfAnOperator) {
  const std::string port = std::to_string(20'000 + getpid() % 10'000);
  expect_two_ranks_that_agree(two_processes("RANK", {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
}

TEST_F(Launchers, RefusesVariablesOfTwoLaunchersThatDisagree) {
  const Finished finished = run_program(
      with_variables({"RANK=0", "WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}) + training());
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err,
              testing::HasSubstr("RANK=0 WORLD_SIZE=1 and OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"));
}

}  // namespace
}  // namespace thinwire::test
