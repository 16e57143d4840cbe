// What one optimizer step cost and sent: one line of JSONL. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thinwire::schema {

struct BucketReport {
  int bucket = 0;
  std::string group;  // "dense" | "embedding" | "body"
  std::string codec;  // codec text
  std::int64_t elements = 0;
  std::int64_t sent_bytes = 0;  // by this rank, both hops, counted at the Group
  double ready_s = 0;           // since the step's first hook, seconds
  double encode_s = 0;
  double exchange_s = 0;  // both hops, from the first send to the last byte
  double reduce_s = 0;    // the owner's decode, mean and encode between the hops
  double decode_s = 0;
  double residual_ratio = 0;  // |new residual| / |what was encoded|; 0 for dense
};

struct StepReport {
  std::int64_t step = 0;
  std::string optimizer_stage;   // "warm_up" | "one_bit" | "dense" (no staged optimizer)
  std::int64_t sent_bytes = 0;   // by this rank, everything since the last report
  double compression_ratio = 0;  // fp32 all-reduce bytes / sent bytes
  double exposed_s = 0;          // time the trainer's thread waited for the exchange
  double update_s = 0;           // time in step()
  double grad_norm = 0;          // 0: not computed (no clipping)
  double clip_factor = 1;
  bool skipped = false;  // a non-finite gradient somewhere: nothing was changed
  std::vector<BucketReport> buckets;
};

// A number that is not finite is written as null and read back as NaN.
std::string to_json_line(const StepReport& report);         // no newline at the end
StepReport step_report_from_json(const std::string& line);  // Error kCorrupt with the path to the field

}  // namespace thinwire::schema
