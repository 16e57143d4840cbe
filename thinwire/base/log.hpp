// Where the library's few messages go. The library never prints: the program says who listens.
#pragma once

#include <functional>
#include <string>

namespace thinwire {

enum class LogLevel { kInfo, kWarning, kError };
const char* to_string(LogLevel level);

using LogSink = std::function<void(LogLevel, const std::string&)>;

// Replaces the process-wide sink; an empty one drops messages, which is the default. Thread safe. A message that is
// under way when this returns may still reach the old sink. The sink may be called on any thread, several at a time.
void set_log_sink(LogSink sink);

// Hands a message (one line, no newline at its end) to the sink. Thread safe. What the sink throws, the caller gets.
void log(LogLevel level, const std::string& message);

}  // namespace thinwire
