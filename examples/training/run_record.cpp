#include "examples/training/run_record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace examples {
namespace {

using nlohmann::ordered_json;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// What the order of the samples follows from: a resume with others would see samples twice and others never.
ordered_json flags_of_sample_order(const TrainingFlags& flags) {
  return {{"--seed", flags.seed}, {"--micro-batch", flags.micro_batch}, {"--accumulate", flags.accumulate}};
}

}  // namespace

RunRecord::RunRecord(const TrainingFlags& flags, const thinwire::DataParallel& parallel)
    : flags_(flags),
      parallel_(parallel),
      samples_per_step_(flags.micro_batch * flags.accumulate * parallel.size()),
      terminal_(isatty(STDERR_FILENO) == 1) {
  if (flags_.progress_every_s == 0) flags_.progress_every_s = terminal_ ? 0.5 : 10.0;
}

void RunRecord::begin_step() {
  step_began_s_ = thinwire::monotonic_seconds();
}

void RunRecord::end_step(std::int64_t step, double loss, const thinwire::schema::StepReport& report) {
  step_seconds_.push_back(thinwire::monotonic_seconds() - step_began_s_);
  ++steps_;
  skipped_ += report.skipped ? 1 : 0;
  sent_bytes_ += report.sent_bytes;
  last_step_bytes_ = report.sent_bytes;
  exposed_s_ += report.exposed_s;
  show_progress(step, loss, report);
}

void RunRecord::add_evaluation(std::int64_t steps_done, ordered_json numbers) {
  ordered_json evaluation = {{"step", steps_done}, {"seconds", sum(step_seconds_)}};
  evaluation.update(numbers);
  evaluations_.push_back(evaluation);
}

ordered_json RunRecord::seconds_until(const std::string& number, double target) const {
  if (target > 0)
    for (const auto& evaluation : evaluations_)
      if (evaluation.at(number).get<double>() >= target) return evaluation.at("seconds");
  return nullptr;
}

void RunRecord::show_progress(std::int64_t step, double loss, const thinwire::schema::StepReport& report) {
  const double now = thinwire::monotonic_seconds();
  const bool last = step + 1 == last_step(flags_);
  if (parallel_.rank() != 0 || (now < next_progress_s_ && !last)) return;
  next_progress_s_ = now + flags_.progress_every_s;
  const double seconds = step_seconds_.back();
  std::fprintf(stderr, "%sstep %5lld/%lld  loss %.3f  %.1f samples/s  exposed %.0f %%  sent %.2f MB/step  %s%s",
               terminal_ ? "\r\033[K" : "", static_cast<long long>(step + 1), static_cast<long long>(flags_.steps),
               loss, static_cast<double>(samples_per_step_) / seconds, 100 * report.exposed_s / seconds,
               static_cast<double>(report.sent_bytes) * 1e-6, report.optimizer_stage.c_str(),
               terminal_ && !last ? "" : "\n");
  std::fflush(stderr);
}

std::string RunRecord::save() const {
  return ordered_json{{"sample_order", flags_of_sample_order(flags_)},
                      {"step_seconds", step_seconds_},
                      {"skipped", skipped_},
                      {"sent_bytes", sent_bytes_},
                      {"exposed_s", exposed_s_},
                      {"evaluations", evaluations_},
                      {"steps", steps_},
                      {"last_step_bytes", last_step_bytes_}}
      .dump();
}

void RunRecord::restore(const std::string& text) try {
  const auto saved = ordered_json::parse(text);
  const auto given = flags_of_sample_order(flags_);
  for (const auto& [flag, value] : saved.at("sample_order").items()) {
    if (given.at(flag) == value) continue;
    thinwire::fail(thinwire::ErrorCode::kMismatch, {.place = "resume",
                                                    .what = flag,
                                                    .got = given.at(flag).dump(),
                                                    .want = value.dump() + " as in the checkpoint",
                                                    .hint = {}});
  }
  saved.at("step_seconds").get_to(step_seconds_);
  saved.at("steps").get_to(steps_);
  saved.at("skipped").get_to(skipped_);
  saved.at("sent_bytes").get_to(sent_bytes_);
  saved.at("last_step_bytes").get_to(last_step_bytes_);
  saved.at("exposed_s").get_to(exposed_s_);
  evaluations_ = saved.at("evaluations");
} catch (const nlohmann::json::exception& error) {
  thinwire::fail(thinwire::ErrorCode::kCorrupt,
                 {.place = "resume",
                  .what = std::string("the checkpoint is of another program: ") + error.what(),
                  .got = {},
                  .want = {},
                  .hint = {}});
}

ordered_json RunRecord::summary() const {
  const double seconds = sum(step_seconds_);
  const auto steps = static_cast<double>(std::max<std::int64_t>(steps_, 1));
  return {{"optimizer", flags_.optimizer},
          {"codec", flags_.codec.empty() ? (flags_.optimizer == "one_bit" ? "one_bit" : "fp32") : flags_.codec},
          {"ranks", parallel_.size()},
          {"seed", flags_.seed},
          {"steps", steps_},
          {"skipped_steps", skipped_},
          {"seconds", seconds},
          {"samples_per_s", seconds > 0 ? static_cast<double>(samples_per_step_) * steps / seconds : 0.0},
          {"median_step_s", median(step_seconds_)},
          {"mean_exposed_s", exposed_s_ / steps},
          {"sent_bytes", sent_bytes_},
          {"sent_bytes_last_step", last_step_bytes_},
          {"evaluations", evaluations_}};
}

void RunRecord::finish(const ordered_json& extra) const {
  if (parallel_.rank() != 0) return;
  ordered_json result = extra;
  result.update(summary());
  const std::string line = result.dump() + "\n";
  if (!flags_.result.empty()) thinwire::write_file_atomically(flags_.result, line);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void print_messages(int rank) {
  if (rank != 0) return;
  thinwire::set_log_sink([](thinwire::LogLevel level, const std::string& text) {
    const char* clear_progress = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";
    std::fprintf(stderr, "%s%s: %s\n", clear_progress, thinwire::to_string(level), text.c_str());
  });
}

}  // namespace examples
