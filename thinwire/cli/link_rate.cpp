#include "thinwire/cli/link_rate.hpp"

#include <array>
#include <cstdio>

#include "thinwire/base/parse.hpp"

namespace thinwire::cli {
double link_bits_per_second(const std::string& link) {
  return parse_link_speed(link).bytes_per_second.value_or(0) * 8;
}

std::string readable_rate(double bits_per_second) {
  if (bits_per_second <= 0) return "no limit";
  const char* unit = " bit/s";
  for (const char* larger : {" kbit/s", " Mbit/s", " Gbit/s"}) {
    if (bits_per_second < 1000) break;
    bits_per_second /= 1000;
    unit = larger;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", bits_per_second);
  return text.data() + std::string(unit);
}

}  // namespace thinwire::cli
