// What `thinwire bench step --json` writes: every contender's step over one link. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::schema {

// A figure that does not exist (nothing to compare with) is null in the JSON. Seconds are of one optimizer step.
struct BenchRow {
  std::string contender;  // compute torch-compute dense bf16 int4 one_bit torch-ddp torch-ddp-fp16 torch-powersgd1
  double median_s = 0;
  double min_s = 0;
  double max_s = 0;
  std::optional<double> exposed_s;         // step time minus that of compute only in the same language
  std::optional<std::int64_t> sent_bytes;  // per step, counted at the link; PyTorch on plain loopback has none
  std::optional<double> vs_torch_ddp;      // speed ratio, above 1: faster than PyTorch DDP
  std::optional<double> vs_compute;        // speed ratio to the faster compute-only row
};

struct BenchReport {
  std::string link;  // as on the command line: "1gbit"
  int ranks = 0;
  bool emulated = false;  // the link was emulated inside the program, not shaped by the kernel
  std::vector<BenchRow> rows;
};

std::string to_json(const BenchReport& report);               // indented, one newline at the end
BenchReport bench_report_from_json(const std::string& text);  // Error kCorrupt with the path to the field

// Written atomically. Throws Error kIo.
void write_bench_report(const BenchReport& report, const std::string& path);

}  // namespace thinwire::schema
