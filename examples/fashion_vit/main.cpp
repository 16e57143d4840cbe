// Trains a small vision transformer on Fashion-MNIST, on one rank or many:
//   fashion_vit
//   thinwire run -n 2 --link 100mbit -- fashion_vit --optimizer one_bit
#include <torch/torch.h>

#include <CLI/CLI.hpp>

#include "examples/data/fashion_mnist.hpp"
#include "examples/data/sample_order.hpp"
#include "examples/fashion_vit/fashion_vit.hpp"
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
  FashionVitShape shape;
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::int64_t eval_images = 2000;
  double target_accuracy = 0;
};

// Everything that a step needs, made once.
struct Job {
  const Flags& flags;
  const FashionMnist& data;
  FashionVit& model;
  thinwire::DataParallel& parallel;
  torch::optim::Optimizer& optimizer;
};

struct Score {
  double loss = 0;
  double accuracy = 0;
};

// Over `images` spread evenly over the test set; each rank computes every n-th of them.
Score evaluate(Job& job, std::int64_t images) {
  const torch::NoGradGuard no_grad;
  job.model->eval();
  std::vector<std::int64_t> mine;
  const std::int64_t all = job.data.test.labels.numel();
  images = std::min(images, all);
  for (std::int64_t i = job.parallel.rank(); i < images; i += job.parallel.size()) mine.push_back(i * all / images);
  torch::Tensor sums = torch::zeros({3}, torch::kFloat64);  // loss, right answers, images
  constexpr std::size_t kAtOnce = 256;
  for (std::size_t first = 0; first < mine.size(); first += kAtOnce) {
    const std::span part = std::span(mine).subspan(first, std::min(kAtOnce, mine.size() - first));
    const ImageBatch batch = images_at(job.data.test, part);
    const torch::Tensor scores = job.model->forward(batch.pixels);
    const auto count = static_cast<double>(part.size());
    const double loss = torch::nn::functional::cross_entropy(scores, batch.labels).item<double>();
    const double right = scores.argmax(1).eq(batch.labels).sum().item<double>();
    sums += torch::tensor({loss * count, right, count}, torch::kFloat64);
  }
  job.parallel.all_reduce_mean(sums);
  job.model->train();
  return {(sums[0] / sums[2]).item<double>(), (sums[1] / sums[2]).item<double>()};
}

// Forward and backward of all micro-batches of a step. Returns this rank's mean loss.
double backward_all(Job& job, std::int64_t step) {
  const TrainingFlags& flags = job.flags.training;
  const BatchPlace place{flags.seed, job.parallel.rank(), job.parallel.size(), flags.micro_batch, flags.accumulate};
  double sum = 0;
  for (std::int64_t micro = 0; micro < flags.accumulate; ++micro) {
    const ImageBatch batch =
        images_at(job.data.train, draw_by_epochs(place, step, micro, job.data.train.labels.numel()));
    const auto backward = [&] {
      const torch::Tensor scores = job.model->forward(batch.pixels);
      const torch::Tensor loss = torch::nn::functional::cross_entropy(scores, batch.labels);
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

void record_score(RunRecord& record, std::int64_t steps_done, const Score& score) {
  record.add_evaluation(steps_done, {{"accuracy", score.accuracy}, {"test_loss", score.loss}});
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
    if (!last && is_due(done, flags.eval_every)) record_score(record, done, evaluate(job, job.flags.eval_images));
    if (!flags.checkpoint.empty() && (last || is_due(done, flags.save_every)))
      thinwire::save_checkpoint(flags.checkpoint, job.parallel, job.optimizer, {.step = done, .extra = record.save()});
  }
}

void run(const Flags& flags) {
  torch::manual_seed(flags.training.seed);
  const FashionMnist data = read_fashion_mnist(flags.data);
  FashionVit model(flags.shape);

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
  Job job{flags, data, model, parallel, *optimizer};
  train(job, record, first_step);

  record_score(record, last_step(flags.training), evaluate(job, flags.eval_images));
  const Score score = evaluate(job, data.test.labels.numel());
  write_trace(flags.training, parallel);
  record.finish({{"program", "fashion_vit"},
                 {"accuracy", score.accuracy},
                 {"test_loss", score.loss},
                 {"target_accuracy", flags.target_accuracy},
                 {"seconds_to_target", record.seconds_until("accuracy", flags.target_accuracy)},
                 {"frozen_at", frozen_at(*optimizer)},
                 {"link", world->hop1().description()},
                 {"emulated", world->emulated()}});
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.training.micro_batch = 64;
  flags.training.steps = 240;
  flags.training.lr = 2e-3;
  flags.training.lr_end = 2e-5;
  flags.training.lr_warmup_steps = 20;
  flags.training.weight_decay = 0.05;
  flags.training.eval_every = 20;
  CLI::App app(
      "Trains a small vision transformer on Fashion-MNIST.\n"
      "Example: thinwire run -n 2 --link 100mbit -- fashion_vit --optimizer one_bit",
      "fashion_vit");
  app.add_option("--data", flags.data, "directory of the four IDX files, plain or .gz")->capture_default_str();
  add_training_flags(app, flags.training);
  app.add_option("--layers", flags.shape.layers)->check(whole_number(1));
  app.add_option("--width", flags.shape.width)->check(whole_number(1));
  app.add_option("--heads", flags.shape.heads)->check(whole_number(1));
  app.add_option("--eval-images", flags.eval_images, "test images per evaluation; the last one also takes all")
      ->check(whole_number(1));
  app.add_option("--target-accuracy", flags.target_accuracy, "the result says when an evaluation first reached it")
      ->check(number(0, 1));
  return run_program(app, argc, argv, [&] { run(flags); });
}
