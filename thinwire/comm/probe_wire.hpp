// The bytes of a probe: one header line, then the text it announces.
//   request  "thinwire1 <nonce> <kind> <from> <bytes>\n<text>"      answer  "thinwire1 <nonce> <bytes>\n<text>"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "thinwire/comm/probe.hpp"

namespace thinwire::comm {

inline constexpr std::size_t kMaxProbeHeader = 128;

// A message that may not be complete yet.
enum class Parsed { kIncomplete, kComplete, kForeign };

std::string encode_request(std::uint64_t nonce, const Request& request);
std::string encode_answer(std::uint64_t nonce, std::string_view text);

// kForeign as soon as the bytes cannot become a message with this nonce.
Parsed parse_request(std::string_view bytes, std::uint64_t nonce, Request* request);
Parsed parse_answer(std::string_view bytes, std::uint64_t nonce, std::string* text);

}  // namespace thinwire::comm
