// The arithmetic and the table of `thinwire bench step`: from measured steps to rows. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "thinwire/schema/bench_report.hpp"

namespace thinwire::cli {

enum class Language { kCpp, kPython };

struct Contender {
  std::string name;
  Language language;
  bool communicates;
  int warm_up_steps;  // before anything is measured: buckets are cut anew after step 1, one_bit freezes, PowerSGD
                      // starts
};

// All of them, in the order of the table.
const std::vector<Contender>& contenders();
// Error kInvalidArgument naming the known ones.
const Contender& contender(const std::string& name);
// "dense,one_bit" -> those two, in the order of the table, each once; empty: all.
std::vector<Contender> chosen_contenders(const std::string& list);

// One contender's measurement: every step's time (that of the slowest rank) and what the busiest rank sent per step
// (empty where nobody could count it).
struct Samples {
  std::string contender;
  std::vector<double> step_s;
  std::optional<double> sent_bytes_per_step = 0;
};

// REQUIRES: every sample has at least one step.
//   exposed_s     median - median of the compute row of the same language, at least 0
//   vs_torch_ddp  median of torch-ddp / median          vs_compute  the smaller compute median / median
// What has no row to compare with stays empty.
std::vector<schema::BenchRow> bench_rows(const std::vector<Samples>& measured);

// Middle value; mean of the two middle ones for an even count. REQUIRES: not empty.
double median(std::vector<double> values);

std::string bench_table(const std::vector<schema::BenchRow>& rows);

// "1.36 MB", "824 kB", "312 B".
std::string readable_bytes(double bytes);

}  // namespace thinwire::cli
