// Times one training step of every contender, interleaved, on N ranks over one link: what `thinwire bench step` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "thinwire/cli/bench_rows.hpp"
#include "thinwire/cli/link.hpp"
#include "thinwire/schema/bench_report.hpp"

namespace thinwire::cli {

struct BenchSettings {
  int ranks = 2;
  std::string link = "1gbit";
  LinkMode link_mode = LinkMode::kAuto;
  std::vector<Contender> contenders;
  int rounds = 5;              // more: medians that interruptions of the machine move less
  int steps_per_round = 4;     // measured; one more before them warms the caches that the others have emptied
  std::string cpp_program;     // thinwire-bench-step; empty: its rows are left out
  std::string python_program;  // the PyTorch contenders
  std::string python;          // interpreter
  std::function<void(const std::string&)> on_notice;    // one sentence: the link, what is left out and why
  std::function<void(const std::string&)> on_progress;  // "round 2/5: torch-ddp"
};

// Throws Error (a worker ended or did not answer, no contender can run), Interrupted. Leaves nothing behind.
schema::BenchReport bench_step(const BenchSettings& settings);

}  // namespace thinwire::cli
