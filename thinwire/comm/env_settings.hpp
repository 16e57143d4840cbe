// Who am I, and where do the ranks meet? Read from the variables that launchers set. Torch-free.
//
// Order, first match wins: RANK and WORLD_SIZE (torchrun, thinwire run, Kubernetes training operator); Open MPI
// (OMPI_COMM_WORLD_*); MPICH, Intel MPI and other PMI launchers (PMI_RANK, PMI_SIZE; Slurm's where srun set both and
// they agree); Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS or else SLURM_NTASKS); none: alone. MASTER_ADDR and
// MASTER_PORT win over whatever a launcher's other variables say about the address.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "thinwire/base/env.hpp"

namespace thinwire::comm {

struct EnvSettings {
  std::string launcher = "none";  // "torchrun", "environment", "Open MPI", "PMI", "Slurm"
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string host = {};  // of the store; empty only in a world of one
  int port = 0;
  bool agent_hosts_store = false;  // torchrun's agent does; then rank 0 is a client too
  std::string job_id = {};    // equal on all ranks of a job, different between jobs; empty: the launcher gives none
  std::string restart = "0";  // counts the restarts of the same job by its launcher
};

using Environment = std::function<std::optional<std::string>(const char* name)>;

// Throws Error kInvalidArgument that names the variable: missing, not a number, out of range, or two launchers that
// contradict each other. `rank >= size` is left to the meeting of the ranks, which can tell the others.
EnvSettings read_env_settings(const Environment& environment = env_text);

// "node[003-006,9],login1" -> "node003": the first host of a Slurm list.
std::string first_slurm_host(const std::string& list);

// What THINWIRE_TIMEOUT_S may say, and `thinwire run --timeout` with it.
inline constexpr double kMinTimeout_s = 0.1;
inline constexpr double kMaxTimeout_s = 1e6;

// Seconds of THINWIRE_TIMEOUT_S in milliseconds. Throws as above.
std::optional<long long> read_timeout_ms(const Environment& environment = env_text);

}  // namespace thinwire::comm
