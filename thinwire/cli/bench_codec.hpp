// What `thinwire bench codec` measures: speed of every codec, implementation, dtype and operation against memcpy, on
// one core in one run, and the error of every codec.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "thinwire/codec/values.hpp"
#include "thinwire/schema/codec_report.hpp"

namespace thinwire::cli {

struct CodecBenchSettings {
  std::vector<std::string> codecs;           // texts; empty: every known codec with its defaults
  std::vector<std::string> implementations;  // empty: all that this machine has
  std::vector<codec::Dtype> dtypes = {codec::Dtype::kFp32};
  std::int64_t elements = 16 * 1024 * 1024;  // beyond every cache: what is measured is memory
  int rounds = 7;                            // medians of so many; more for a busy machine
  std::string gradients;                     // raw little-endian fp32 file; empty: no error_gradient
  std::function<void(const std::string&)> on_progress = [](const std::string&) {};
};

// Throws Error: kInvalidArgument (unknown codec or implementation), kNotFound, kIo, kCorrupt (gradients).
schema::CodecReport bench_codec(const CodecBenchSettings& settings);

std::string codec_table(const schema::CodecReport& report);

}  // namespace thinwire::cli
