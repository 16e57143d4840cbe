#include "thinwire/watch/jsonl.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "thinwire/base/file_descriptor.hpp"

namespace thinwire::watch {
namespace {

constexpr const char* kPlace = "watch::JsonlWriter";

}  // namespace

struct JsonlWriter::Impl {
  explicit Impl(const std::string& file)
      : path(file), descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}

  std::string path;
  std::mutex mutex;  // around writing a line
  FileDescriptor descriptor;
};

JsonlWriter::JsonlWriter(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  if (!impl_->descriptor.valid()) fail_with_errno(ErrorCode::kIo, kPlace, "open", path);
}

JsonlWriter::~JsonlWriter() = default;

void JsonlWriter::append(std::string_view line) {
  if (line.find('\n') != std::string_view::npos) {
    fail(ErrorCode::kInvalidArgument,
         {.place = kPlace, .what = "line", .got = "a newline inside", .want = "one line", .hint = ""});
  }
  const std::string text = std::string(line) + "\n";
  const std::lock_guard lock(impl_->mutex);
  const int file = impl_->descriptor.get();
  const off_t end = ::lseek(file, 0, SEEK_END);
  if (write_all(file, std::as_bytes(std::span(text)))) return;
  const int reason = errno;
  const int taken_back = end < 0 ? -1 : ::ftruncate(file, end);
  errno = reason;
  fail_with_errno(ErrorCode::kIo, kPlace, taken_back == 0 ? "append a line to" : "append a line (a part stays) to",
                  impl_->path);
}

}  // namespace thinwire::watch
