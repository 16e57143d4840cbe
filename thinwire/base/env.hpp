// Environment variables. An empty value counts as not set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace thinwire {

// Thread safe as long as nobody calls setenv at the same time.
std::optional<std::string> env_text(const char* name);

// A whole decimal number. Throws Error kInvalidArgument, naming variable, value and range, when it is none or lies
// outside least ... most.
std::optional<std::int64_t> env_int64(const char* name, std::int64_t least, std::int64_t most);

}  // namespace thinwire
