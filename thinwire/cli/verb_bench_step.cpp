#include <cstdio>
#include <filesystem>
#include <map>

#include "thinwire/base/env.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/cli/bench_step.hpp"
#include "thinwire/cli/bench_workers.hpp"
#include "thinwire/cli/parse_arguments.hpp"
#include "thinwire/cli/progress_line.hpp"
#include "thinwire/cli/verbs.hpp"
#include "thinwire/version.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kName = "thinwire bench step";
constexpr const char* kAbout =
    "Times one training step of thinwire and of PyTorch, side by side, on N ranks over a given link.\n"
    "Example: thinwire bench step --ranks 2 --link 100mbit --json step.json\n";
constexpr const char* kMore =
    "Every contender trains the same transformer (10,868,992 parameters, one thread per rank, Adam update included), "
    "one\n"
    "at a time, in rounds. median, min, max: seconds per step; exposed: median minus the compute-only row of the same\n"
    "language; sent/step: bytes that one rank sends, counted at its network interface; vs: speed ratios, above 1 is\n"
    "faster, vs compute against the faster of the two. Contenders: compute torch-compute dense bf16 int4 one_bit\n"
    "torch-ddp torch-ddp-fp16 torch-powersgd1.";

struct BenchOptions {
  BenchSettings bench;
  std::string contenders;  // comma-separated
  std::string json;
};

void declare(CLI::App& app, BenchOptions& options) {
  BenchSettings& bench = options.bench;
  const auto positive = [](int most) { return CLI::Range(1, most).description(""); };
  app.footer(kMore);
  app.add_option("--ranks", bench.ranks, "number of ranks (2)")->type_name("N")->check(positive(64));
  app.add_option("--link", bench.link, "rate of each rank's link as tc writes it, or none (1gbit)")->type_name("RATE");
  app.add_option("--link-mode", bench.link_mode, "auto, namespaces or emulated (auto)")
      ->type_name("MODE")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LinkMode>{{"auto", LinkMode::kAuto},
                                                                          {"namespaces", LinkMode::kNamespaces},
                                                                          {"emulated", LinkMode::kEmulated}})
                      .description(""));
  app.add_option("--contenders", options.contenders, "comma-separated; all if not given")->type_name("LIST");
  app.add_option("--rounds", bench.rounds, "rounds, each with every contender in turn (5)")
      ->type_name("R")
      ->check(positive(1000));
  app.add_option("--steps-per-round", bench.steps_per_round, "measured steps of a contender per round (4)")
      ->type_name("S")
      ->check(positive(1000));
  app.add_option("--json", options.json, "also write the rows to this file")->type_name("FILE");
  app.add_option("--python", bench.python, "interpreter that has torch (THINWIRE_PYTHON, else that of the build)")
      ->type_name("PROGRAM");
}

// The installed tree and the build tree have the same shape: bin/ beside share/thinwire/.
void find_programs(BenchSettings& bench) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  bench.cpp_program = folder / "thinwire-bench-step";
  bench.python_program = (folder / "../share/thinwire/bench_step_torch.py").lexically_normal();
  if (!bench.python.empty()) return;
  bench.python = env_text("THINWIRE_PYTHON").value_or(kPython);
  if (bench.python.empty()) bench.python = "python3";
}

int measure(BenchOptions& options) {
  if (!options.json.empty()) check_writable(options.json);
  ProgressLine line;
  options.bench.on_progress = [&](const std::string& text) { line.show(text); };
  options.bench.on_notice = [&](const std::string& text) {
    line.clear();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  };
  const schema::BenchReport report = bench_step(options.bench);
  line.clear();
  std::fputs(bench_table(report.rows).c_str(), stdout);
  if (!options.json.empty()) schema::write_bench_report(report, options.json);
  return 0;
}

}  // namespace

int bench_step_verb(const Arguments& arguments) {
  BenchOptions options;
  CLI::App app(kAbout, kName);
  declare(app, options);
  if (const auto status = parse_arguments(app, arguments)) return *status;
  try {
    options.bench.contenders = chosen_contenders(options.contenders);
    check_link(options.bench.link, options.bench.link_mode);
  } catch (const Error& error) {
    return usage_error(kName, error.what());
  }
  find_programs(options.bench);
  try {
    return measure(options);
  } catch (const Interrupted& interrupted) {
    std::fprintf(stderr, "%s: %s received: ended\n", kName, signal_name(interrupted.signal_number).c_str());
    return 128 + interrupted.signal_number;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}

}  // namespace thinwire::cli
