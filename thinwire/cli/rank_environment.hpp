// The variables that a rank is started with: those of torchrun, and a few of ours.
#pragma once

#include <string>
#include <vector>

#include "thinwire/cli/link.hpp"

namespace thinwire::cli {

struct Rendezvous {
  int ranks = 1;
  int port = 0;        // MASTER_PORT
  std::string run_id;  // TORCHELASTIC_RUN_ID: the same on all ranks of one launch, different for every launch
};

// Our environment, changed by: torchrun's variables; OMP_NUM_THREADS = max(1, processors / ranks) and, over loopback,
// GLOO_SOCKET_IFNAME=lo unless set; the link's variables, and no THINWIRE_EMULATED_LINK of ours where a link is asked
// for; THINWIRE_TIMEOUT_S when timeout_s > 0; `extra`, which wins.
std::vector<std::string> rank_environment(int rank, const Rendezvous& rendezvous, const Link& link, double timeout_s,
                                          const Variables& extra);

// A TCP port on which nobody listens, outside the range from which the system gives outgoing connections theirs (which
// could take it before the ranks do). Throws Error kUnavailable.
int free_port();

// Different for every launch on this machine.
std::string new_run_id();

}  // namespace thinwire::cli
