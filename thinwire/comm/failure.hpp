// How a group's failure becomes an Error that says who and what.
#pragma once

#include <functional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/group.hpp"

namespace thinwire::comm {

// Called once per failed operation, on the thread that waits for it, outside any lock. `backend_text` is what the
// backend said, which names nobody or an innocent. May ask other ranks and take seconds. Must not throw.
using FailureHandler = std::function<Error(const OpTag&, const std::string& backend_text)>;

// "dense in step 12 bucket 3": the part of an error message that says which operation.
std::string to_string(const OpTag& tag);

// A place for a handler that comes after the groups and goes before them; handles that outlive both find the plain one.
// Thread safe.
class FailureSlot {
 public:
  explicit FailureSlot(FailureHandler otherwise) : otherwise_(std::move(otherwise)) {}
  void install(FailureHandler handler);
  void clear();  // returns when no thread is inside the handler
  Error call(const OpTag& tag, const std::string& backend_text);

 private:
  FailureHandler otherwise_;
  std::shared_mutex mutex_;  // guards handler_
  FailureHandler handler_;
};

// Blames nobody: kPeerFailure with the operation and the backend's first line.
FailureHandler plain_failure_handler(std::string place);

}  // namespace thinwire::comm
