// Environment variables. An empty value counts as not set.
#pragma once

#include <optional>
#include <string>

namespace thinwire {

// Thread safe as long as nobody calls setenv at the same time.
std::optional<std::string> env_text(const char* name);

}  // namespace thinwire
