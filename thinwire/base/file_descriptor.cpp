#include "thinwire/base/file_descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace thinwire {

FileDescriptor::~FileDescriptor() {
  close();
}

bool FileDescriptor::close() {
  if (!valid()) return true;
  const int number = number_;
  number_ = -1;
  return ::close(number) == 0 || errno == EINTR;  // after EINTR Linux has closed it
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
