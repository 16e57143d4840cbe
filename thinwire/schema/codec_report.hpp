// What `thinwire bench codec --json` writes: how fast each codec is on one core, and how exact. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::schema {

struct CodecRow {
  std::string codec;           // its text, options included
  std::string implementation;  // scalar, an instruction set, cuda; numpy and torch for the peers
  std::string dtype;           // of the input: fp32 bf16 fp16
  std::string op;              // encode decode encode_feedback momentum_encode accumulate_decode decode_update
  double gb_per_s = 0;         // 10^9 bytes of the floats on one side (input of an encode, output of a decode)
  double vs_memcpy = 0;  // bytes that the loop moves per second / bytes that memcpy moves (read and written) per second
  double bits_per_element = 0;
  // |x - decode(encode(x))| / |x|, of the codec alone, on four kinds of values.
  double error = 0;  // normal
  double error_student_t = 0;
  double error_sparse = 0;
  std::optional<double> error_gradient;  // null without a file of gradients
};

struct CodecReport {
  std::int64_t elements = 0;
  double memcpy_gb_per_s = 0;  // read and written, median
  std::string gradients;       // the file, or empty
  std::vector<CodecRow> rows;
};

std::string to_json(const CodecReport& report);               // indented, one newline at the end
CodecReport codec_report_from_json(const std::string& text);  // Error kCorrupt with the path to the field

// Written atomically. Throws Error kIo.
void write_codec_report(const CodecReport& report, const std::string& path);

}  // namespace thinwire::schema
