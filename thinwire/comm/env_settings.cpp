#include "thinwire/comm/env_settings.hpp"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "thinwire/base/error.hpp"
#include "thinwire/base/hash.hpp"

namespace thinwire::comm {
namespace {

constexpr const char* kPlace = "comm::read_env_settings";

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& hint) {
  fail(ErrorCode::kInvalidArgument, {.place = kPlace, .what = what, .got = got, .want = want, .hint = hint});
}

int parse_number(const char* name, const std::string& text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    refuse(std::string("variable ") + name, "\"" + text + "\"",
           "a number from " + std::to_string(low) + " to " + std::to_string(high), "");
  return value;
}

constexpr int kMaxRanks = 1 << 20;

int required(const Environment& environment, const char* name, int low, const char* because) {
  const auto text = environment(name);
  if (!text)
    refuse(std::string("variable ") + name, "none", std::string("one, since ") + because + " is set",
           "a launcher: thinwire run, torchrun, mpirun or srun");
  return parse_number(name, *text, low, kMaxRanks);
}

int optional_number(const Environment& environment, const char* name, int otherwise) {
  const auto text = environment(name);
  return text ? parse_number(name, *text, 0, kMaxRanks) : otherwise;
}

// Two variables of one launcher that come together or not at all.
struct Pair {
  const char* launcher;
  const char* rank;
  const char* size;
};
constexpr Pair kTorch{"environment", "RANK", "WORLD_SIZE"};
constexpr Pair kOpenMpi{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr Pair kPmi{"PMI", "PMI_RANK", "PMI_SIZE"};
// srun's. An allocation sets its number of tasks too, but a shell in it is no task and has no SLURM_PROCID.
constexpr Pair kSlurmStep{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
constexpr Pair kSlurmJob{"Slurm", "SLURM_PROCID", "SLURM_NTASKS"};

std::optional<EnvSettings> read_pair(const Environment& environment, const Pair& pair) {
  if (!environment(pair.rank) && !environment(pair.size)) return std::nullopt;
  EnvSettings settings{.launcher = pair.launcher};
  settings.rank = required(environment, pair.rank, 0, pair.size);
  settings.size = required(environment, pair.size, 1, pair.rank);
  return settings;
}

std::optional<EnvSettings> read_slurm(const Environment& environment) {
  if (!environment(kSlurmStep.rank)) return std::nullopt;
  return read_pair(environment, environment(kSlurmStep.size) ? kSlurmStep : kSlurmJob);
}

void check_agreement(const Environment& environment, const EnvSettings& chosen, const Pair& mine, const Pair& other) {
  const auto theirs = read_pair(environment, other);
  if (!theirs || (theirs->rank == chosen.rank && theirs->size == chosen.size)) return;
  const auto say = [](const Pair& pair, const EnvSettings& settings) {
    return std::string(pair.rank) + "=" + std::to_string(settings.rank) + " " + pair.size + "=" +
           std::to_string(settings.size);
  };
  refuse("variables of two launchers", say(mine, chosen) + " and " + say(other, *theirs), "the same or one of them",
         "unsetting those that are left over from an outer launcher");
}

int port_from(const std::string& job) {
  return 20'000 + static_cast<int>(hash_text(job) % 10'000);
}

void use_master(const Environment& environment, EnvSettings& settings) {
  if (const auto host = environment("MASTER_ADDR")) settings.host = *host;
  if (const auto port = environment("MASTER_PORT")) settings.port = parse_number("MASTER_PORT", *port, 1, 65'535);
}

void require_address(const EnvSettings& settings) {
  if (settings.size == 1) return;
  if (settings.host.empty())
    refuse("variable MASTER_ADDR", "none", "the address of rank 0's host",
           "passing it on, e.g. mpirun -x MASTER_ADDR=...");
  if (settings.port == 0)
    refuse("variable MASTER_PORT", "none", "a free port on rank 0's host", "passing it on, e.g. MASTER_PORT=29500");
}

EnvSettings from_torch(const Environment& environment, EnvSettings settings) {
  settings.local_rank = optional_number(environment, "LOCAL_RANK", 0);
  const auto run_id = environment("TORCHELASTIC_RUN_ID");
  if (run_id) {
    settings.launcher = "torchrun";
    settings.job_id = *run_id;
  } else {
    // An outer torchrun, srun or mpirun around torchrun is fine: the innermost launcher is the one that counts.
    check_agreement(environment, settings, kTorch, kOpenMpi);
    check_agreement(environment, settings, kTorch, kPmi);
  }
  const auto agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  settings.agent_hosts_store = agent && (*agent == "True" || *agent == "true" || *agent == "1");
  if (const auto restart = environment("TORCHELASTIC_RESTART_COUNT")) settings.restart = *restart;
  return settings;
}

// `job` is whatever tells this job from another one of the same user on this host.
void use_one_host(EnvSettings& settings, const std::string& job) {
  settings.job_id = job;
  settings.host = "127.0.0.1";
  settings.port = port_from(job);
}

EnvSettings from_open_mpi(const Environment& environment, EnvSettings settings) {
  check_agreement(environment, settings, kOpenMpi, kPmi);
  settings.local_rank = optional_number(environment, "OMPI_COMM_WORLD_LOCAL_RANK", 0);
  std::string job = "mpirun";
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_mpi_job_id"})
    if (const auto value = environment(name)) {
      job = *value;
      break;
    }
  if (optional_number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 0) == settings.size) use_one_host(settings, job);
  settings.job_id = job == "mpirun" ? "" : job;
  return settings;
}

EnvSettings from_slurm(const Environment& environment, EnvSettings settings) {
  settings.local_rank = optional_number(environment, "SLURM_LOCALID", 0);
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"})
    if (const auto list = environment(name); list && settings.host.empty()) settings.host = first_slurm_host(*list);
  if (const auto job = environment("SLURM_JOB_ID")) {
    const auto step = environment("SLURM_STEP_ID");
    settings.job_id = step ? *job + "." + *step : *job;
    settings.port = port_from(settings.job_id);
  }
  return settings;
}

// Hydra sets no job id; its ranks on one host are children of one proxy. srun --mpi=pmi2 sets PMI's variables beside
// its own, and only its own say where rank 0 is.
EnvSettings from_pmi(const Environment& environment, EnvSettings settings) {
  settings.local_rank = optional_number(environment, "MPI_LOCALRANKID", 0);
  const auto id = environment("PMI_JOBID");
  if (optional_number(environment, "MPI_LOCALNRANKS", 0) == settings.size)
    use_one_host(settings, id ? *id : "parent " + std::to_string(getppid()));
  if (id) settings.job_id = *id;
  if (!settings.host.empty()) return settings;
  const auto slurm = read_slurm(environment);
  const bool same = slurm && slurm->rank == settings.rank && slurm->size == settings.size;
  return same ? from_slurm(environment, *slurm) : settings;
}

EnvSettings from_launcher(const Environment& environment) {
  if (const auto torch = read_pair(environment, kTorch)) return from_torch(environment, *torch);
  if (const auto open_mpi = read_pair(environment, kOpenMpi)) return from_open_mpi(environment, *open_mpi);
  if (const auto pmi = read_pair(environment, kPmi)) return from_pmi(environment, *pmi);
  if (const auto slurm = read_slurm(environment)) return from_slurm(environment, *slurm);
  return {};
}

}  // namespace

EnvSettings read_env_settings(const Environment& environment) {
  EnvSettings settings = from_launcher(environment);
  if (settings.launcher == "none") return settings;
  use_master(environment, settings);
  require_address(settings);
  if (const auto job = environment("THINWIRE_JOB_ID")) settings.job_id = *job;
  return settings;
}

std::string first_slurm_host(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  const std::string head = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return head;
  const std::size_t number_end = list.find_first_of("-,]", end + 1);
  if (number_end == std::string::npos || number_end == end + 1)
    refuse("list of hosts of Slurm", "\"" + list + "\"", "names like node[01-04,7]", "setting MASTER_ADDR");
  const std::size_t close = list.find(']', end);
  const std::size_t tail_end = list.find_first_of("[,", close + 1);
  const std::string tail = close == std::string::npos ? "" : list.substr(close + 1, tail_end - close - 1);
  return head + list.substr(end + 1, number_end - end - 1) + tail;
}

std::optional<long long> read_timeout_ms(const Environment& environment) {
  const auto text = environment("THINWIRE_TIMEOUT_S");
  if (!text) return std::nullopt;
  char* end = nullptr;
  const double seconds = std::strtod(text->c_str(), &end);
  if (*end == '\0' && seconds >= kMinTimeout_s && seconds <= kMaxTimeout_s) return std::llround(seconds * 1000);
  std::ostringstream want;
  want << "seconds from " << kMinTimeout_s << " to " << std::fixed << std::setprecision(0) << kMaxTimeout_s;
  refuse("variable THINWIRE_TIMEOUT_S", "\"" + *text + "\"", want.str(), "THINWIRE_TIMEOUT_S=300");
}

}  // namespace thinwire::comm
