#include "thinwire/cli/bench_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "thinwire/base/error.hpp"
#include "thinwire/cli/bench_workers.hpp"
#include "thinwire/cli/launch_scope.hpp"

namespace thinwire::cli {
namespace {

constexpr int kSettlingSteps = 1;

// The compute-only row of C++ is the faster of these; both are honest ways to train alone.
struct Variant {
  const char* name;
  const char* means;
};
constexpr Variant kComputeVariants[] = {{"compute:adamw", "thinwire::AdamW in a world of one"},
                                        {"compute:adam", "torch::optim::Adam"}};

struct Measurement {
  std::vector<double> step_s;  // of the slowest rank: a step of all ranks ends with it
  // Of the busiest rank, all steps together. Not known where ranks share loopback and the program cannot count itself.
  std::optional<double> sent_bytes = 0;
};

using Bytes = std::optional<double>;

Bytes sum(Bytes a, Bytes b) {
  return a && b ? Bytes(*a + *b) : std::nullopt;
}
Bytes larger(Bytes a, Bytes b) {
  return a && b ? Bytes(std::max(*a, *b)) : std::nullopt;
}
Bytes sent_bytes(const Contender& one, const nlohmann::json& counted) {
  if (!counted.is_null()) return counted.get<double>();
  return one.communicates ? std::nullopt : Bytes(0);
}

class Bench {
 public:
  explicit Bench(const BenchSettings& settings)
      : settings_(settings), scope_(settings.ranks, settings.link, settings.link_mode) {}

  schema::BenchReport run() {
    notice("link: " + scope_.link.description);
    start_workers();
    leave_out_what_cannot_be_slowed();
    if (running_.empty())
      fail(ErrorCode::kUnavailable, {"bench step", "no contender can run here", "", "", "the reasons above"});
    warm_up();
    for (int round = 0; round < settings_.rounds; ++round) run_round(round);
    return report();
  }

 private:
  void notice(const std::string& text) const {
    if (settings_.on_notice) settings_.on_notice(text);
  }
  void progress(const std::string& text) const {
    if (settings_.on_progress) settings_.on_progress(text);
  }

  void start_workers() {
    start(Language::kCpp, {"thinwire-bench-step", {settings_.cpp_program}}, settings_.cpp_program);
    start(Language::kPython, {"the PyTorch program", {settings_.python, "-u", settings_.python_program}},
          settings_.python_program);
    for (const Contender& one : settings_.contenders)
      if (workers_.count(one.language) != 0) running_.push_back(one);
  }

  void start(Language language, WorkerProgram program, const std::string& file) {
    const auto uses = [&](const Contender& one) { return one.language == language; };
    if (std::none_of(settings_.contenders.begin(), settings_.contenders.end(), uses)) return;
    std::string why = std::filesystem::exists(file) ? "" : "[bench step] no such file: " + file;
    if (why.empty()) why = try_to_start(language, std::move(program));
    if (why.empty()) return;
    workers_.erase(language);
    std::string rows;
    for (const Contender& one : settings_.contenders)
      if (uses(one)) rows += " " + one.name;
    notice("left out:" + rows + ": " + why);
  }

  // Why the program cannot run; empty: it is ready.
  std::string try_to_start(Language language, WorkerProgram program) {
    progress("starting " + program.title);
    try {
      workers_[language] = std::make_unique<BenchWorkers>(scope_, std::move(program), settings_.ranks);
      return workers_[language]->wait_until_ready();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kInvalidArgument) throw;
      return error.what();
    }
  }

  // The emulated link is part of thinwire: PyTorch would run over plain loopback, and the comparison would be a lie.
  void leave_out_what_cannot_be_slowed() {
    if (!scope_.link.emulated) return;
    const auto unfair = [](const Contender& one) { return one.communicates && one.language == Language::kPython; };
    std::string rows;
    for (const Contender& one : running_)
      if (unfair(one)) rows += " " + one.name;
    running_.erase(std::remove_if(running_.begin(), running_.end(), unfair), running_.end());
    if (!rows.empty()) notice("left out:" + rows + ": an emulated link slows only thinwire");
  }

  void warm_up() {
    for (const Contender& one : running_) {
      progress("warming up: " + one.name);
      if (one.name == "compute") {
        choose_compute(one.warm_up_steps);
      } else {
        ask(one, one.name, one.warm_up_steps);
      }
    }
  }

  void choose_compute(int steps) {
    double best_s = 0;
    std::string text;
    for (const Variant& variant : kComputeVariants) {
      const Contender& compute = contender("compute");
      ask(compute, variant.name, steps);
      const double median_s = median(ask(compute, variant.name, steps).step_s);
      text += std::string(text.empty() ? "" : ", ") + variant.means + " " + milliseconds(median_s);
      if (best_s != 0 && median_s >= best_s) continue;
      best_s = median_s;
      compute_ = &variant;
    }
    notice("compute: " + std::string(compute_->means) + ", the faster of: " + text);
  }

  static std::string milliseconds(double s) { return std::to_string(std::lround(s * 1e3)) + " ms"; }

  // Every round begins with another contender, so that none always follows the same one.
  void run_round(int round) {
    const std::size_t count = running_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Contender& one = running_[(i + static_cast<std::size_t>(round)) % count];
      progress("round " + std::to_string(round + 1) + "/" + std::to_string(settings_.rounds) + ": " + one.name);
      const std::string name = one.name == "compute" ? compute_->name : one.name;
      ask(one, name, kSettlingSteps);
      const Measurement measured = ask(one, name, settings_.steps_per_round);
      Measurement& all = measured_[one.name];
      all.step_s.insert(all.step_s.end(), measured.step_s.begin(), measured.step_s.end());
      all.sent_bytes = sum(all.sent_bytes, measured.sent_bytes);
    }
  }

  Measurement ask(const Contender& one, const std::string& name, int steps) {
    Measurement slowest;
    slowest.step_s.assign(static_cast<std::size_t>(steps), 0);
    for (const nlohmann::json& answer : workers_.at(one.language)->run(name, steps)) {
      const auto step_s = answer.at("step_s").get<std::vector<double>>();
      for (std::size_t i = 0; i < slowest.step_s.size(); ++i)
        slowest.step_s[i] = std::max(slowest.step_s[i], step_s.at(i));
      slowest.sent_bytes = larger(slowest.sent_bytes, sent_bytes(one, answer.at("sent_bytes")));
      check(one, answer);
    }
    return slowest;
  }

  // A contender that does not train, or measures the wrong thing, has no row.
  void check(const Contender& one, const nlohmann::json& answer) const {
    if (!answer.at("loss").is_number() || !std::isfinite(answer.at("loss").get<double>()))
      fail(ErrorCode::kInternal,
           {"bench step", "loss of " + one.name, answer.at("loss").dump(), "a finite number", ""});
    if (one.name == "one_bit" && answer.value("stage", "") != "one_bit")
      fail(ErrorCode::kInternal,
           {"bench step", "optimizer stage of one_bit", answer.value("stage", "none"),
            "one_bit (the variance frozen) after " + std::to_string(one.warm_up_steps) + " steps", ""});
  }

  schema::BenchReport report() const {
    std::vector<Samples> samples;
    for (const Contender& one : running_) {
      const Measurement& measured = measured_.at(one.name);
      Samples row{one.name, measured.step_s, measured.sent_bytes};
      if (row.sent_bytes_per_step) *row.sent_bytes_per_step /= static_cast<double>(row.step_s.size());
      samples.push_back(std::move(row));
    }
    schema::BenchReport report;
    report.link = settings_.link;
    report.ranks = settings_.ranks;
    report.emulated = scope_.link.emulated;
    report.rows = bench_rows(samples);
    return report;
  }

  const BenchSettings& settings_;
  LaunchScope scope_;
  std::map<Language, std::unique_ptr<BenchWorkers>> workers_;
  std::vector<Contender> running_;
  const Variant* compute_ = nullptr;
  std::map<std::string, Measurement> measured_;
};

}  // namespace

schema::BenchReport bench_step(const BenchSettings& settings) {
  return Bench(settings).run();
}

}  // namespace thinwire::cli
