#include "thinwire/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>

#include "thinwire/base/file_descriptor.hpp"

namespace thinwire {
namespace {

constexpr const char* kWrite = "write_file_atomically";
constexpr const char* kRead = "read_file";

// Also its own beside processes of other hosts and containers, which may have the same number.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  static const unsigned process = std::random_device()();
  return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(process) + "." +
         std::to_string(counter.fetch_add(1));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Removes the temporary file unless it has been renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string name) : name_(std::move(name)) {}
  ~TemporaryFile() {
    if (!renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool rename_to(const std::string& path) {
    renamed_ = ::rename(name_.c_str(), path.c_str()) == 0;
    return renamed_;
  }

 private:
  std::string name_;
  bool renamed_ = false;
};

// Makes the rename itself survive a crash. Some file systems cannot sync a folder and say so.
void sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) fail_with_errno(ErrorCode::kIo, kWrite, "open the folder", folder);
  if (::fsync(descriptor.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return;
  fail_with_errno(ErrorCode::kIo, kWrite, "sync the folder", folder);
}

// Where symbolic links lead, also when nothing is there yet.
std::string followed(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::filesystem::path at = path;
  std::error_code code;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(at, code); ++links) {
    const std::filesystem::path to = std::filesystem::read_symlink(at, code);
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at.string();
}

// Something that a rename must not replace: /dev/null, a named pipe.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void write_in_place(const std::string& path, FileChunks chunks) {
  FileDescriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!descriptor.valid()) fail_with_errno(ErrorCode::kIo, kWrite, "open", path);
  for (const auto& chunk : chunks)
    if (!write_all(descriptor.get(), chunk)) fail_with_errno(ErrorCode::kIo, kWrite, "write", path);
  if (!descriptor.close()) fail_with_errno(ErrorCode::kIo, kWrite, "close", path);
}

}  // namespace

void write_file_atomically(const std::string& given, FileChunks chunks) {
  const std::string path = followed(given);
  if (is_special(path)) return write_in_place(path, chunks);
  const std::string name = temporary_name(path);
  FileDescriptor descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!descriptor.valid()) fail_with_errno(ErrorCode::kIo, kWrite, "create", name);
  TemporaryFile temporary(name);
  for (const auto& chunk : chunks)
    if (!write_all(descriptor.get(), chunk)) fail_with_errno(ErrorCode::kIo, kWrite, "write", path);
  if (::fsync(descriptor.get()) != 0) fail_with_errno(ErrorCode::kIo, kWrite, "sync", path);
  if (!descriptor.close()) fail_with_errno(ErrorCode::kIo, kWrite, "close", path);
  if (!temporary.rename_to(path)) fail_with_errno(ErrorCode::kIo, kWrite, "rename a temporary file to", path);
  sync_folder(path);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::span<const std::byte> chunk = std::as_bytes(std::span(text.data(), text.size()));
  write_file_atomically(path, FileChunks(&chunk, 1));
}

void check_writable(const std::string& given) {
  const std::string path = followed(given);
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) fail_with_errno(ErrorCode::kIo, kWrite, "write", path);
    return;
  }
  const std::string name = temporary_name(path);
  const FileDescriptor descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!descriptor.valid()) fail_with_errno(ErrorCode::kIo, kWrite, "create", name);
  const TemporaryFile temporary(name);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  errno = EISDIR;
  fail_with_errno(ErrorCode::kIo, kWrite, "write", path);
}

std::string read_text_file(const std::string& path) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.valid()) {
    fail_with_errno(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, kRead, "open", path);
  }
  std::string text;
  struct stat status {};
  if (::fstat(descriptor.get(), &status) == 0 && status.st_size > 0)
    text.reserve(static_cast<std::size_t>(status.st_size));
  for (char buffer[1 << 16];;) {
    const ssize_t got = ::read(descriptor.get(), buffer, sizeof(buffer));
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      fail_with_errno(ErrorCode::kIo, kRead, "read", path);
    }
  }
}

std::vector<std::byte> read_file(const std::string& path) {
  const std::string text = read_text_file(path);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string path_of_rank(const std::string& path, int rank, int size) {
  constexpr std::string_view kMark = "{rank}";
  const std::string number = std::to_string(rank);
  if (const std::size_t at = path.find(kMark); at != std::string::npos)
    return std::string(path).replace(at, kMark.size(), number);
  if (path.empty() || size == 1) return path;
  const std::filesystem::path parts(path);
  std::filesystem::path of_rank = parts;
  return of_rank.replace_extension("." + number + parts.extension().string()).string();
}

}  // namespace thinwire
