#include "examples/training/output_files.hpp"

#include <torch/torch.h>

#include <filesystem>
#include <system_error>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"

namespace examples {
namespace {

constexpr const char* kCheckpoint = "--checkpoint";

// Each rank tries a name of its own, as it will when it saves.
void check_checkpoint(const std::string& directory, int rank) {
  if (directory.empty()) return;
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) throw UsageError(std::string(kCheckpoint) + " " + directory + ": cannot make it: " + code.message());
  check_output_file(kCheckpoint, (std::filesystem::path(directory) / ("rank-" + std::to_string(rank))).string());
}

void check_own(const TrainingFlags& flags, const thinwire::World& world) {
  const auto of_rank = [&](const std::string& path) {
    return thinwire::path_of_rank(path, world.rank(), world.size());
  };
  check_checkpoint(flags.checkpoint, world.rank());
  check_output_file("--log", of_rank(flags.log));
  check_output_file("--trace", of_rank(flags.trace));
  if (world.rank() == 0) check_output_file("--result", flags.result);
}

}  // namespace

void check_output_file(const char* flag, const std::string& path) {
  if (path.empty()) return;
  try {
    thinwire::check_writable(path);
  } catch (const thinwire::Error& error) {
    throw UsageError(std::string(flag) + ": " + error.what());
  }
}

void check_output_files(const TrainingFlags& flags, thinwire::World& world) {
  std::string problem;
  try {
    check_own(flags, world);
  } catch (const UsageError& error) {
    problem = error.what();
  }
  torch::Tensor found = torch::full({1}, problem.empty() ? 0.0F : 1.0F);
  const thinwire::train::WaitingScope waiting(world.progress());
  world.hop1().all_reduce(found, thinwire::comm::ReduceOp::kMax, {.what = "check of files"})->wait();
  if (!problem.empty()) throw UsageError(problem);
  if (found.item<float>() > 0) throw UsageError("another rank cannot write its files; its own message says which");
}

}  // namespace examples
