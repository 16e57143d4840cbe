#include "thinwire/base/error.hpp"

namespace thinwire {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kIo:
      return "input/output";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kPeerFailure:
      return "peer failure";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kState:
      return "state";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string format(const ErrorText& text) {
  std::string message = "[" + text.place + "] " + text.what;
  if (!text.got.empty()) message += "; got " + text.got;
  if (!text.want.empty()) message += (text.got.empty() ? "; want " : ", want ") + text.want;
  if (!text.hint.empty()) message += "; try " + text.hint;
  return message;
}

void fail(ErrorCode code, const ErrorText& text) {
  throw Error(code, format(text));
}

}  // namespace thinwire
