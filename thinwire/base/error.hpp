// The one exception type of thinwire. Every message reads "[place] what; got X, want Y; try Z".
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace thinwire {

enum class ErrorCode {
  kInvalidArgument,  // the caller passed something outside the documented range
  kNotFound,         // a file, program, interface or name does not exist
  kIo,               // reading or writing failed (disk full, permission)
  kTimeout,          // nobody is to blame yet, but a deadline passed
  kPeerFailure,      // another rank is gone, stopped, slow or unreachable; the message says who
  kMismatch,         // ranks disagree about something that must be equal on all of them
  kCorrupt,          // bytes from outside do not decode (truncated, foreign, bad checksum)
  kState,            // a call in the wrong order
  kUnavailable,      // not compiled in, or the machine cannot do it
  kInternal,         // a broken invariant of ours: please report
};

std::string_view to_string(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// The parts of a message; empty parts are left out.
struct ErrorText {
  std::string place;  // "comm::all_reduce"
  std::string what;   // "number of ranks"
  std::string got;
  std::string want;
  std::string hint;  // "try ..." without the word try
};

std::string format(const ErrorText& text);

[[noreturn]] void fail(ErrorCode code, const ErrorText& text);

}  // namespace thinwire
