// Rates as tc writes them, for people and for tc.
#pragma once

#include <string>

namespace thinwire::cli {

inline constexpr const char* kNoLimit = "none";

// Bits per second of a link that parse_link_speed (base/parse.hpp) reads; 0 for "none". Throws Error kInvalidArgument.
double link_bits_per_second(const std::string& link);

// "100 Mbit/s", "1.5 Gbit/s", "no limit" for 0.
std::string readable_rate(double bits_per_second);

}  // namespace thinwire::cli
