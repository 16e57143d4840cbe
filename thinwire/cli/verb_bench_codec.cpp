#include <cstdio>
#include <map>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/cli/bench_codec.hpp"
#include "thinwire/cli/parse_arguments.hpp"
#include "thinwire/cli/progress_line.hpp"
#include "thinwire/cli/verbs.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kName = "thinwire bench codec";
constexpr const char* kAbout =
    "Times every codec on one core against memcpy, and tells how exact it is.\n"
    "Example: thinwire bench codec --codecs int4,one_bit --json codec.json\n";
constexpr const char* kMore =
    "GB/s: bytes of the floats on one side; of memcpy: bytes that the loop reads and writes per second, against "
    "memcpy\n"
    "moving as many in the same run; bits: per element; error: |x - decode(encode(x))| / |x| of normal values (the "
    "JSON\n"
    "also has Student's t, sparse values and, with --gradients, real ones).";

struct CodecOptions {
  CodecBenchSettings bench;
  std::string json;
};

void declare(CLI::App& app, CodecOptions& options) {
  CodecBenchSettings& bench = options.bench;
  app.footer(kMore);
  app.add_option("--codec", bench.codecs, "a codec's text; may be given several times (all known codecs)")
      ->type_name("TEXT");
  app.add_option("--implementation", bench.implementations, "scalar or an instruction set; several times (all)")
      ->type_name("NAME");
  app.add_option("--dtype", bench.dtypes, "of the input: fp32, bf16 or fp16; several times (fp32)")
      ->type_name("DTYPE")
      ->transform(CLI::CheckedTransformer(std::map<std::string, codec::Dtype>{{"fp32", codec::Dtype::kFp32},
                                                                              {"bf16", codec::Dtype::kBf16},
                                                                              {"fp16", codec::Dtype::kFp16}})
                      .description(""));
  app.add_option("--elements", bench.elements, "of every array (16777216: 64 MiB of fp32)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32).description(""));
  app.add_option("--rounds", bench.rounds, "measurements of which the median counts (7)")
      ->type_name("R")
      ->check(CLI::Range(1, 1000).description(""));
  app.add_option("--gradients", bench.gradients, "raw fp32 file of real gradients (char_gpt --dump-gradients)")
      ->type_name("FILE");
  app.add_option("--json", options.json, "also write the rows to this file")->type_name("FILE");
}

}  // namespace

int bench_codec_verb(const Arguments& arguments) {
  CodecOptions options;
  CLI::App app(kAbout, kName);
  declare(app, options);
  if (const auto status = parse_arguments(app, arguments)) return *status;
  try {
    if (!options.json.empty()) check_writable(options.json);
    ProgressLine line;
    options.bench.on_progress = [&](const std::string& text) { line.show(text); };
    const schema::CodecReport report = bench_codec(options.bench);
    line.clear();
    std::fputs(codec_table(report).c_str(), stdout);
    if (!options.json.empty()) schema::write_codec_report(report, options.json);
    return 0;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return usage_error(kName, error.what());
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}

}  // namespace thinwire::cli
