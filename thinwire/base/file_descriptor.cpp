#include "thinwire/base/file_descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace thinwire {

FileDescriptor::~FileDescriptor() {
  close();
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

bool FileDescriptor::close() noexcept {
  if (!valid()) return true;
  return ::close(std::exchange(number_, -1)) == 0 || errno == EINTR;  // after EINTR Linux has closed it
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

void fail_with_errno(ErrorCode code, const char* place, const char* action, const std::string& path) {
  const std::string reason = std::generic_category().message(errno);
  fail(code, {.place = place,
              .what = std::string("cannot ") + action + " " + path + ": " + reason,
              .got = "",
              .want = "",
              .hint = ""});
}

}  // namespace thinwire
