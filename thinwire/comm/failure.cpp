#include "thinwire/comm/failure.hpp"

#include <mutex>
#include <utility>

namespace thinwire::comm {

std::string to_string(const OpTag& tag) {
  std::string text = *tag.what == '\0' ? "operation" : tag.what;
  if (tag.step >= 0) text += " in step " + std::to_string(tag.step);
  if (tag.bucket >= 0) text += " bucket " + std::to_string(tag.bucket);
  return text;
}

void FailureSlot::install(FailureHandler handler) {
  const std::unique_lock lock(mutex_);
  handler_ = std::move(handler);
}

void FailureSlot::clear() {
  install(nullptr);
}

Error FailureSlot::call(const OpTag& tag, const std::string& backend_text) {
  const std::shared_lock lock(mutex_);
  return (handler_ ? handler_ : otherwise_)(tag, backend_text);
}

FailureHandler plain_failure_handler(std::string place) {
  return [place = std::move(place)](const OpTag& tag, const std::string& backend_text) {
    return Error(ErrorCode::kPeerFailure,
                 format({.place = place,
                         .what = to_string(tag) + " failed; another rank or the network has gone",
                         .got = backend_text.substr(0, backend_text.find('\n')),
                         .want = "",
                         .hint = "the log of every rank: the first one that ended is the cause"}));
  };
}

}  // namespace thinwire::comm
