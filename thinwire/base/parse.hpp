// Quantities as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace thinwire {

// Bytes per second of a rate as tc(8) writes it: a number with bit, kbit, mbit, gbit, tbit (powers of 1000; kibit ...
// tibit powers of 1024) or bps, kbps ... (bytes per second, likewise); without a unit bits per second. Any case.
// "none" is no limit: nothing. Throws Error kInvalidArgument.
std::optional<double> parse_rate(std::string_view text);

// Seconds of "50us", "500ms", "30s", "5m", "2h"; without a unit seconds. Throws Error kInvalidArgument unless it is
// above 0.
double parse_duration_s(std::string_view text);

// How fast a link is to be: "100mbit", or with a latency "1gbit,0.2ms". The one reading of it: the command line checks
// a link with the same function with which the ranks slow themselves down.
struct LinkSpeed {
  std::optional<double> bytes_per_second;  // nothing: no limit
  double latency_s = 0;                    // per message
};
// A rate as parse_rate reads it, then perhaps a comma and a latency as parse_duration_s does. Throws as they do.
LinkSpeed parse_link_speed(std::string_view text);

}  // namespace thinwire
