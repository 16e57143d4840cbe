#include "thinwire/base/env.hpp"

#include <charconv>
#include <cstdlib>

#include "thinwire/base/error.hpp"

namespace thinwire {

std::optional<std::string> env_text(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<std::int64_t> env_int64(const char* name, std::int64_t least, std::int64_t most) {
  const std::optional<std::string> text = env_text(name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  fail(ErrorCode::kInvalidArgument,
       {.place = "environment",
        .what = "variable " + std::string(name),
        .got = "\"" + *text + "\"",
        .want = "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
        .hint = ""});
}

}  // namespace thinwire
