// On disk: DIRECTORY/latest names the newest complete set, DIRECTORY/step-N/rank-R.twckpt is one rank's part:
// 8 bytes magic, 8 bytes length and 8 bytes XXH64 of what follows (little endian), a torch archive.
#include "thinwire/train/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/base/hash.hpp"
#include "thinwire/train/checkpoint/snapshot.hpp"
#include "thinwire/train/ddp/agreement.hpp"
#include "thinwire/train/ddp/reducer.hpp"

namespace thinwire::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSave = "train::save_checkpoint";
constexpr const char* kLoad = "train::load_checkpoint";
constexpr char kMagic[] = "TWCKPT1\n";
constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHeaderBytes = kMagicBytes + 16;
constexpr const char* kOlderSet = "the checkpoint before it, by writing the name of its folder into the file latest";
// A part is written in far less. Younger temporary files may be those of another run that is alive.
constexpr std::chrono::hours kAbandonedAfter{1};

// Runs `work` on every rank and ends on every rank with the same verdict: an error anywhere is an error everywhere.
void together(Reducer& reducer, const char* place, const std::function<void()>& work) {
  std::string message;
  ErrorCode code = ErrorCode::kIo;
  try {
    work();
  } catch (const Error& error) {
    message = error.what();
    code = error.code();
  } catch (const std::exception& error) {
    message = std::string("[") + place + "] " + error.what();
  }
  std::vector<std::string> all;
  reducer.run_collective([&](comm::World& world) {
    all = gather_texts(world.hop1(), message.empty() ? "" : std::to_string(static_cast<int>(code)) + " " + message,
                       "verdict on the checkpoint");
  });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const std::size_t space = all[rank].find(' ');
    throw Error(static_cast<ErrorCode>(std::stoi(all[rank])),
                "rank " + std::to_string(rank) + ": " + all[rank].substr(space + 1));
  }
}

std::string folder_of(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(digits.size() < 10 ? 10 - digits.size() : 0, '0') + digits;
}

// What DIRECTORY/latest says; empty: there is no such file, or there is nothing in it.
std::string latest_in(const fs::path& directory) {
  const fs::path latest = directory / "latest";
  if (!fs::exists(latest)) return "";
  std::string name = read_text_file(latest.string());
  name.resize(name.find_last_not_of(" \r\n\t") + 1);
  return name;
}

// Never the set that `latest` names: it must stay whole until the new one is complete.
std::string free_folder(const fs::path& directory, std::int64_t step) {
  const std::string name = folder_of(step);
  return latest_in(directory) == name ? name + ".again" : name;
}

// "FOLDER NUMBER", chosen by rank 0: the number tells the parts of this save from those of any other.
std::string name_of_set(Reducer& reducer, const fs::path& directory, std::int64_t step) {
  std::string mine;
  together(reducer, kSave, [&] {
    if (reducer.world().rank() != 0) return;
    std::random_device random;
    mine = free_folder(directory, step) + " " + std::to_string((std::uint64_t{random()} << 32) | random());
  });
  std::vector<std::string> all;
  reducer.run_collective([&](comm::World& world) { all = gather_texts(world.hop1(), mine, "name of the checkpoint"); });
  return all[0];
}

fs::path part_of(const fs::path& folder, int rank) {
  return folder / ("rank-" + std::to_string(rank) + ".twckpt");
}

std::vector<std::byte> header_of(std::span<const std::byte> payload) {
  std::vector<std::byte> header(kHeaderBytes);
  const std::uint64_t words[2] = {payload.size(), hash_bytes(payload)};
  std::memcpy(header.data(), kMagic, kMagicBytes);
  std::memcpy(header.data() + kMagicBytes, words, sizeof(words));
  return header;
}

// Throws Error kCorrupt: not ours, cut short, or changed.
std::string payload_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path.string());
  const auto corrupt = [&](const std::string& got, const std::string& want) {
    fail(ErrorCode::kCorrupt, {kLoad, path.string(), got, want, kOlderSet});
  };
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0) {
    corrupt("a file that is no checkpoint of ours", "one that begins with TWCKPT1");
  }
  std::uint64_t words[2];
  std::memcpy(words, bytes.data() + kMagicBytes, sizeof(words));
  const std::span<const std::byte> payload = std::span(bytes).subspan(kHeaderBytes);
  if (words[0] != payload.size()) {
    const char* why = payload.size() < words[0] ? " (the file is cut short)" : " (something was added to the file)";
    corrupt(std::to_string(payload.size()) + " bytes behind its header", std::to_string(words[0]) + why);
  }
  if (words[1] != hash_bytes(payload)) corrupt("another checksum", "the one in its header (the file was changed)");
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) {
    fail(ErrorCode::kIo,
         {kSave, "cannot make " + folder.string(), code.message(), "a writable folder", "another directory"});
  }
}

// Old sets, newest first, as far as this rank can see them.
std::vector<fs::path> sets_in(const fs::path& directory) {
  std::vector<fs::path> sets;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory, code)) {
    if (entry.path().filename().string().rfind("step-", 0) == 0) sets.push_back(entry.path());
  }
  std::sort(sets.rbegin(), sets.rend());
  return sets;
}

// The set to load; empty: nothing has been saved there. Throws Error kCorrupt for a `latest` without a name.
std::string set_to_load(const fs::path& directory) {
  const std::string name = latest_in(directory);
  const fs::path latest = directory / "latest";
  if (!name.empty() || !fs::exists(latest)) return name;
  const std::vector<fs::path> sets = sets_in(directory);
  fail(ErrorCode::kCorrupt,
       {kLoad, latest.string(), "an empty file", "the name of a folder beside it",
        sets.empty() ? "removing the file, to start from the beginning"
                     : "writing the name of a complete set into it (the newest folder is " +
                           sets.front().filename().string() + "), or removing the file, to start from the beginning"});
}

// What a process that was killed while it saved has left of this rank's part.
void remove_temporary_files(const fs::path& set, int rank) {
  std::error_code code;
  const std::string prefix = part_of(set, rank).filename().string() + ".tmp.";
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(set, code)) {
    if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
    const fs::file_time_type written = fs::last_write_time(entry.path(), code);
    if (!code && fs::file_time_type::clock::now() - written > kAbandonedAfter) found.push_back(entry.path());
  }
  for (const fs::path& file : found) fs::remove(file, code);
}

// Errors while tidying up do not matter: the newest set is complete.
void prune(const fs::path& directory, const std::string& newest, int keep, int rank) {
  int kept = 0;
  for (const fs::path& set : sets_in(directory)) {
    std::error_code code;
    remove_temporary_files(set, rank);
    const bool has_part = fs::exists(part_of(set, rank), code);
    if (set.filename().string() > newest || (has_part && ++kept <= keep)) continue;
    fs::remove(part_of(set, rank), code);
    fs::remove(set, code);  // only when it is empty
  }
}

}  // namespace

void save_checkpoint(const std::string& directory, DataParallel& parallel, const torch::optim::Optimizer& optimizer,
                     const TrainerState& state, int keep) {
  Reducer& reducer = parallel.reducer();
  if (keep < 1) fail(ErrorCode::kInvalidArgument, {kSave, "keep", std::to_string(keep), "at least 1", ""});
  if (reducer.state() != Reducer::State::kIdle) {
    fail(ErrorCode::kState, {kSave, "a step is open", "a save between backward and step()", "a save after step()",
                             "calling optimizer.step() first"});
  }
  const std::string set = name_of_set(reducer, directory, state.step);
  const std::string name = set.substr(0, set.find(' '));
  const fs::path folder = fs::path(directory) / name;
  const fs::path part = part_of(folder, parallel.rank());
  try {
    together(reducer, kSave, [&] {
      make_folder(folder);
      const std::string payload = snapshot(parallel, optimizer, state, set);
      const std::span<const std::byte> body = std::as_bytes(std::span(payload));
      const std::vector<std::byte> header = header_of(body);
      const std::span<const std::byte> chunks[] = {header, body};
      write_file_atomically(part.string(), chunks);
    });
  } catch (const Error&) {
    std::error_code code;
    fs::remove(part, code);
    fs::remove(folder, code);  // only when it is empty
    throw;
  }
  together(reducer, kSave, [&] {
    if (reducer.world().local_rank() == 0)
      write_file_atomically((fs::path(directory) / "latest").string(), name + "\n");
  });
  prune(directory, name, keep, parallel.rank());
}

std::optional<TrainerState> load_checkpoint(const std::string& directory, DataParallel& parallel,
                                            torch::optim::Optimizer& optimizer) {
  Reducer& reducer = parallel.reducer();
  std::string name;
  std::unique_ptr<Restore> restore;
  together(reducer, kLoad, [&] { name = set_to_load(directory); });
  reducer.require_same(kLoad, {{"latest checkpoint", name.empty() ? "none" : name}},
                       "a directory that all ranks share");
  if (name.empty()) return std::nullopt;
  together(reducer, kLoad, [&] {
    restore = std::make_unique<Restore>(payload_of(part_of(fs::path(directory) / name, parallel.rank())), parallel,
                                        optimizer);
  });
  reducer.require_same(kLoad, {{"save that the part in " + name + " belongs to", restore->set()}}, kOlderSet);
  return restore->apply(parallel, optimizer);
}

}  // namespace thinwire::train
