// A POSIX file descriptor (a file, a socket, a pipe) that closes itself, and the loops around its calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "thinwire/base/error.hpp"

namespace thinwire {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }

  // Closes now and says whether that worked; some file systems report a full disk only here.
  bool close() noexcept;

 private:
  int number_ = -1;
};

// Writes everything, through interruptions and short writes. False with errno set when that fails.
bool write_all(int descriptor, std::span<const std::byte> bytes);

// Throws `code` with what could not be done to `path` and the system's reason, from errno at the time of the call.
[[noreturn]] void fail_with_errno(ErrorCode code, const char* place, const char* action, const std::string& path);

}  // namespace thinwire
