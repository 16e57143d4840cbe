// Trains a character-level transformer on a text file, on one rank or many:
//   char_gpt --text input.txt
//   thinwire run -n 2 --link 100mbit -- char_gpt --text input.txt --optimizer one_bit
#include <torch/torch.h>

#include <CLI/CLI.hpp>

#include "examples/char_gpt/char_gpt.hpp"
#include "examples/data/sample_order.hpp"
#include "examples/data/text_corpus.hpp"
#include "examples/training/flags.hpp"
#include "examples/training/optimizer.hpp"
#include "examples/training/output_files.hpp"
#include "examples/training/ranges.hpp"
#include "examples/training/run_record.hpp"
#include "examples/training/trace_file.hpp"
#include "thinwire/thinwire.hpp"

namespace {

using namespace examples;

struct Flags {
  TrainingFlags training;
  CharGptShape shape;
  std::string text;
  std::int64_t eval_windows = 512;
};

// Everything that a step needs, made once.
struct Job {
  const Flags& flags;
  const TextCorpus& corpus;
  CharGpt& model;
  thinwire::DataParallel& parallel;
  torch::optim::Optimizer& optimizer;
};

// Mean loss over windows spread over `tokens`; each rank computes every n-th of them.
double evaluate(Job& job, const at::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  job.model->eval();
  const std::vector<std::int64_t> starts = spread_starts(tokens, job.flags.shape.window, job.flags.eval_windows);
  torch::Tensor sums = torch::zeros({2}, torch::kFloat64);  // loss, windows
  std::vector<std::int64_t> mine;
  for (std::size_t i = job.parallel.rank(); i < starts.size(); i += job.parallel.size()) mine.push_back(starts[i]);
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t first = 0; first < mine.size(); first += kAtOnce) {
    const std::span part = std::span(mine).subspan(first, std::min(kAtOnce, mine.size() - first));
    const TokenBatch batch = windows_at(tokens, part, job.flags.shape.window);
    const auto count = static_cast<double>(part.size());
    const double loss = next_character_loss(job.model, batch.input, batch.target).item<double>();
    sums += torch::tensor({loss * count, count}, torch::kFloat64);
  }
  job.parallel.all_reduce_mean(sums);
  job.model->train();
  return (sums[0] / sums[1]).item<double>();
}

// Forward and backward of all micro-batches of a step. Returns this rank's mean loss.
double backward_all(Job& job, std::int64_t step) {
  const TrainingFlags& flags = job.flags.training;
  const BatchPlace place{flags.seed, job.parallel.rank(), job.parallel.size(), flags.micro_batch, flags.accumulate};
  const std::int64_t population = window_count(job.corpus.train, job.flags.shape.window);
  double sum = 0;
  for (std::int64_t micro = 0; micro < flags.accumulate; ++micro) {
    const TokenBatch batch = windows_at(job.corpus.train, draw(place, step, micro, population), job.flags.shape.window);
    const auto backward = [&] {
      const torch::Tensor loss = next_character_loss(job.model, batch.input, batch.target);
      (loss / flags.accumulate).backward();
      sum += loss.item<double>();
    };
    if (micro + 1 < flags.accumulate) {
      const auto only_accumulate = job.parallel.no_sync();
      backward();
    } else {
      backward();  // gradients of all micro-batches travel while this runs
    }
  }
  return sum / static_cast<double>(flags.accumulate);
}

void train(Job& job, RunRecord& record, std::int64_t first_step) {
  const TrainingFlags& flags = job.flags.training;
  WarmUpCosine schedule(job.optimizer, schedule_shape(flags), first_step);
  for (std::int64_t step = first_step; step < last_step(flags); ++step) {
    record.begin_step();
    const double loss = backward_all(job, step);
    job.optimizer.step();
    job.optimizer.zero_grad();
    schedule.step();
    record.end_step(step, loss, job.parallel.last_step());
    const std::int64_t done = step + 1;
    const bool last = done == last_step(flags);
    if (!last && is_due(done, flags.eval_every))
      record.add_evaluation(done, {{"val_loss", evaluate(job, job.corpus.validation)}});
    if (!flags.checkpoint.empty() && (last || is_due(done, flags.save_every)))
      thinwire::save_checkpoint(flags.checkpoint, job.parallel, job.optimizer, {.step = done, .extra = record.save()});
  }
}

void run(const Flags& flags) {
  torch::manual_seed(flags.training.seed);
  const TextCorpus corpus = read_text_corpus(flags.text, flags.shape.window);
  CharGptShape shape = flags.shape;
  shape.characters = static_cast<std::int64_t>(corpus.characters.size());
  CharGpt model(shape);

  const auto world = thinwire::init_from_env();
  print_messages(world->rank());
  check_output_files(flags.training, *world);
  thinwire::DataParallel parallel(*model, *world, parallel_settings(flags.training));
  const auto optimizer = make_optimizer(parallel, flags.training);
  RunRecord record(flags.training, parallel);

  std::int64_t first_step = 0;
  if (flags.training.resume) {
    if (const auto state = thinwire::load_checkpoint(flags.training.checkpoint, parallel, *optimizer)) {
      first_step = state->step;
      record.restore(state->extra);
    }
  }
  Job job{flags, corpus, model, parallel, *optimizer};
  train(job, record, first_step);

  const double val_loss = evaluate(job, corpus.validation);
  const double train_loss = evaluate(job, corpus.train);
  record.add_evaluation(last_step(flags.training), {{"val_loss", val_loss}});
  write_trace(flags.training, parallel);
  record.finish({{"program", "char_gpt"},
                 {"val_loss", val_loss},
                 {"train_loss", train_loss},
                 {"frozen_at", frozen_at(*optimizer)},
                 {"link", world->hop1().description()},
                 {"emulated", world->emulated()}});
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains a character-level transformer on any text file.\n"
      "Example: thinwire run -n 2 -- char_gpt --text input.txt --optimizer one_bit",
      "char_gpt");
  app.add_option("--text", flags.text, "the text to learn; 90 % to train on, 10 % to validate")->required();
  add_training_flags(app, flags.training);
  app.add_option("--layers", flags.shape.layers)->check(whole_number(1));
  app.add_option("--width", flags.shape.width)->check(whole_number(1));
  app.add_option("--heads", flags.shape.heads)->check(whole_number(1));
  app.add_option("--window", flags.shape.window, "characters that a prediction sees")->check(whole_number(1));
  app.add_option("--eval-windows", flags.eval_windows, "windows per evaluation")->check(whole_number(1));
  return run_program(app, argc, argv, [&] { run(flags); });
}
