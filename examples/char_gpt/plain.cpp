// The same model and the same batches without thinwire: plain LibTorch, one process, torch's own AdamW and clipping. It
// is what char_gpt on n ranks is compared with; --micro-batch here is n times the one there.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "examples/char_gpt/char_gpt.hpp"
#include "examples/data/sample_order.hpp"
#include "examples/data/text_corpus.hpp"
#include "examples/training/flags.hpp"
#include "examples/training/optimizer.hpp"
#include "examples/training/output_files.hpp"
#include "examples/training/ranges.hpp"
#include "thinwire/base/clock.hpp"
#include "thinwire/base/file.hpp"

namespace {

using namespace examples;

struct Flags {
  TrainingFlags training;
  CharGptShape shape;
  std::string text;
  std::int64_t eval_windows = 512;
};

double evaluate(CharGpt& model, const Flags& flags, const at::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  const std::vector<std::int64_t> starts = spread_starts(tokens, flags.shape.window, flags.eval_windows);
  double sum = 0;
  for (const std::int64_t start : starts) {
    const TokenBatch batch = windows_at(tokens, std::span(&start, 1), flags.shape.window);
    sum += next_character_loss(model, batch.input, batch.target).item<double>();
  }
  return sum / static_cast<double>(starts.size());
}

void train(CharGpt& model, const Flags& flags, const TextCorpus& corpus) {
  const TrainingFlags& training = flags.training;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(training.lr)
                                                         .betas({training.beta1, training.beta2})
                                                         .weight_decay(training.weight_decay));
  WarmUpCosine schedule(optimizer, schedule_shape(training), 0);
  const BatchPlace place{training.seed, 0, 1, training.micro_batch, training.accumulate};
  const std::int64_t population = window_count(corpus.train, flags.shape.window);
  for (std::int64_t step = 0; step < training.steps; ++step) {
    for (std::int64_t micro = 0; micro < training.accumulate; ++micro) {
      const TokenBatch batch = windows_at(corpus.train, draw(place, step, micro, population), flags.shape.window);
      (next_character_loss(model, batch.input, batch.target) / training.accumulate).backward();
    }
    if (training.max_grad_norm > 0) torch::nn::utils::clip_grad_norm_(model->parameters(), training.max_grad_norm);
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
  }
}

void run(const Flags& flags) {
  check_output_file("--result", flags.training.result);
  torch::manual_seed(flags.training.seed);
  const TextCorpus corpus = read_text_corpus(flags.text, flags.shape.window);
  CharGptShape shape = flags.shape;
  shape.characters = static_cast<std::int64_t>(corpus.characters.size());
  CharGpt model(shape);
  const double began = thinwire::monotonic_seconds();
  train(model, flags, corpus);
  const nlohmann::ordered_json result = {{"program", "char_gpt_plain"},
                                         {"val_loss", evaluate(model, flags, corpus.validation)},
                                         {"train_loss", evaluate(model, flags, corpus.train)},
                                         {"steps", flags.training.steps},
                                         {"seconds", thinwire::monotonic_seconds() - began}};
  if (!flags.training.result.empty()) thinwire::write_file_atomically(flags.training.result, result.dump() + "\n");
  std::printf("%s\n", result.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "The model of char_gpt trained by plain LibTorch in one process.\n"
      "Example: char_gpt_plain --text input.txt --micro-batch 24",
      "char_gpt_plain");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--text", flags.text, "the text to learn; 90 % to train on, 10 % to validate")->required();
  app.add_option("--layers", flags.shape.layers)->check(whole_number(1));
  app.add_option("--width", flags.shape.width)->check(whole_number(1));
  app.add_option("--heads", flags.shape.heads)->check(whole_number(1));
  app.add_option("--window", flags.shape.window, "characters that a prediction sees")->check(whole_number(1));
  app.add_option("--eval-windows", flags.eval_windows, "windows per evaluation")->check(whole_number(1));
  app.add_option("--steps", flags.training.steps)->check(whole_number(1));
  app.add_option("--micro-batch", flags.training.micro_batch)->check(whole_number(1));
  app.add_option("--accumulate", flags.training.accumulate)->check(whole_number(1));
  app.add_option("--lr-warmup-steps", flags.training.lr_warmup_steps)->check(whole_number(0));
  app.add_option("--seed", flags.training.seed)->check(unsigned_number());
  app.add_option("--result", flags.training.result, "file for the result, a line of JSON, that is also printed");
  return run_program(app, argc, argv, [&] { run(flags); });
}
