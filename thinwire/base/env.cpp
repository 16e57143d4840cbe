#include "thinwire/base/env.hpp"

#include <cstdlib>

namespace thinwire {

std::optional<std::string> env_text(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace thinwire
