#include "examples/training/flags.hpp"

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "examples/training/ranges.hpp"

namespace examples {
namespace {

void add_optimizer_flags(CLI::App& app, TrainingFlags& flags) {
  app.add_option("--optimizer", flags.optimizer, "adamw: gradients travel; one_bit: 1-bit Adam")
      ->check(CLI::IsMember({"adamw", "one_bit"}));
  app.add_option("--codec", flags.codec, "how gradients (adamw: fp32 bf16 int8 int4) or momentum (one_bit) travel");
  app.add_option("--warmup-codec", flags.warmup_codec, "one_bit before its freeze: fp32 bf16 int8 int4");
  app.add_option("--freeze-step", flags.freeze_step, "one_bit: freeze the variance after this step; -1: automatic")
      ->check(whole_number(-1));
  app.add_option("--clip-mode", flags.clip_mode, "exact, or predicted: keeps the overlap")
      ->check(CLI::IsMember({"exact", "predicted"}));
  app.add_option("--max-grad-norm", flags.max_grad_norm, "0: no clipping")->check(number(0));
  app.add_option("--lr", flags.lr, "learning rate after the warm-up")->check(number(0));
  app.add_option("--lr-end", flags.lr_end, "learning rate after the last step")->check(number(0));
  app.add_option("--lr-warmup-steps", flags.lr_warmup_steps)->check(whole_number(0));
  app.add_option("--beta1", flags.beta1)->check(number(0, 1));
  app.add_option("--beta2", flags.beta2)->check(number(0, 1));
  app.add_option("--weight-decay", flags.weight_decay, "of every parameter")->check(number(0));
}

void add_run_flags(CLI::App& app, TrainingFlags& flags) {
  app.add_option("--micro-batch", flags.micro_batch, "samples per rank and backward pass")->check(whole_number(1));
  app.add_option("--accumulate", flags.accumulate, "backward passes per step")->check(whole_number(1));
  app.add_option("--steps", flags.steps)->check(whole_number(1));
  app.add_option("--seed", flags.seed)->check(unsigned_number());
  app.add_option("--eval-every", flags.eval_every, "steps; 0: only at the end")->check(whole_number(0));
}

void add_file_flags(CLI::App& app, TrainingFlags& flags) {
  CLI::Option* checkpoint =
      app.add_option("--checkpoint", flags.checkpoint, "directory; saved to after the last step")->check(not_empty());
  app.add_option("--save-every", flags.save_every, "steps; 0: only at the end")
      ->check(whole_number(0))
      ->needs(checkpoint);
  app.add_option("--stop-after", flags.stop_after, "end with a checkpoint after this step; go on with --resume")
      ->check(whole_number(0))
      ->needs(checkpoint);
  app.add_flag("--resume", flags.resume, "go on from the newest checkpoint, if there is one")->needs(checkpoint);
  app.add_option("--log", flags.log, "one JSON line per step; {rank} is replaced");
  app.add_option("--trace", flags.trace, "Chrome trace; {rank} is replaced");
  app.add_option("--result", flags.result, "file for the result, a line of JSON, that is also printed");
  app.add_option("--progress-every", flags.progress_every_s, "seconds")->check(number(0));
}

void complain(const std::string& name, std::string text) {
  if (const auto end = text.find_last_not_of("\n "); end != std::string::npos) text.resize(end + 1);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), text.c_str());
}

// CLI11 reads "--name=" as "--name" and takes whatever comes next for its value, be it another option.
std::string option_without_value(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size()) return argv[i];
  }
  return "";
}

}  // namespace

void add_training_flags(CLI::App& app, TrainingFlags& flags) {
  app.option_defaults()->always_capture_default();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_optimizer_flags(app, flags);
  add_run_flags(app, flags);
  add_file_flags(app, flags);
}

thinwire::DataParallelSettings parallel_settings(const TrainingFlags& flags) {
  thinwire::DataParallelSettings settings;
  if (flags.optimizer == "adamw" && !flags.codec.empty()) settings.codec = flags.codec;
  settings.max_grad_norm = flags.max_grad_norm;
  settings.clip_mode = flags.clip_mode == "exact" ? thinwire::ClipMode::kExact : thinwire::ClipMode::kPredicted;
  settings.step_log = flags.log;
  return settings;
}

std::int64_t last_step(const TrainingFlags& flags) {
  return flags.stop_after > 0 ? std::min(flags.stop_after, flags.steps) : flags.steps;
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
  if (const std::string option = option_without_value(argc, argv); !option.empty()) {
    complain(app.get_name(), option + " has no value; see --help");
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    complain(app.get_name(), std::string(error.what()) + "; see --help");
    return 2;
  }
  try {
    body();
    return 0;
  } catch (const UsageError& error) {
    complain(app.get_name(), error.what());
    return 2;
  } catch (const c10::Error& error) {
    complain(app.get_name(), error.what_without_backtrace());
  } catch (const std::exception& error) {
    complain(app.get_name(), error.what());
  }
  return 1;
}

}  // namespace examples
