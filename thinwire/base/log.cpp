#include "thinwire/base/log.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace thinwire {
namespace {

struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogSink> current;  // guarded by mutex; null: drop
};

// Never destroyed: threads may log while the process ends.
Sink& sink() {
  static Sink* const instance = new Sink;
  return *instance;
}

}  // namespace

const char* to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

void set_log_sink(LogSink new_sink) {
  auto replacement = new_sink ? std::make_shared<const LogSink>(std::move(new_sink)) : nullptr;
  const std::lock_guard lock(sink().mutex);
  sink().current.swap(replacement);
}

void log(LogLevel level, const std::string& message) {
  std::shared_ptr<const LogSink> current;
  {
    const std::lock_guard lock(sink().mutex);
    current = sink().current;
  }
  if (current) (*current)(level, message);
}

}  // namespace thinwire
