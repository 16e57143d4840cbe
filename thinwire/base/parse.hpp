// Quantities as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace thinwire {

// Bytes per second of a rate as tc(8) writes it: a number with bit, kbit, mbit, gbit, tbit (powers of 1000; kibit ...
// tibit powers of 1024) or bps, kbps ... (bytes per second, likewise); without a unit bits per second. Any case.
// "none" is no limit: nothing. Throws Error kInvalidArgument.
std::optional<double> parse_rate(std::string_view text);

// Seconds of "500ms", "30s", "5m", "2h"; without a unit seconds. Throws Error kInvalidArgument unless it is above 0.
double parse_duration_s(std::string_view text);

}  // namespace thinwire
