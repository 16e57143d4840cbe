#include "thinwire/base/parse.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire {
namespace {

struct Quantity {
  double number = 0;
  std::string unit;  // lower case
};

std::optional<Quantity> split(std::string_view text) {
  Quantity quantity;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, quantity.number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(quantity.number) || quantity.number <= 0) return std::nullopt;
  for (const char* c = stop; c != end; ++c)
    quantity.unit += *c >= 'A' && *c <= 'Z' ? static_cast<char>(*c - 'A' + 'a') : *c;
  return quantity;
}

// Bytes per second of one unit.
std::optional<double> rate_unit(std::string_view unit) {
  if (unit.empty()) return 1.0 / 8;
  double bytes = 0;
  if (unit.ends_with("bit")) {
    bytes = 1.0 / 8;
  } else if (unit.ends_with("bps")) {
    bytes = 1.0;
  } else {
    return std::nullopt;
  }
  constexpr std::array<std::string_view, 5> kPrefixes = {"", "k", "m", "g", "t"};
  const std::string_view prefix = unit.substr(0, unit.size() - 3);
  for (std::size_t power = 0; power < kPrefixes.size(); ++power) {
    if (prefix == kPrefixes[power]) return bytes * std::pow(1000.0, static_cast<double>(power));
    if (power > 0 && prefix == std::string(kPrefixes[power]) + "i")
      return bytes * std::pow(1024.0, static_cast<double>(power));
  }
  return std::nullopt;
}

std::optional<double> duration_unit(std::string_view unit) {
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit.empty() || unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  return std::nullopt;
}

[[noreturn]] void refuse(const char* place, const char* what, std::string_view text, const char* want) {
  fail(ErrorCode::kInvalidArgument,
       {.place = place, .what = what, .got = "\"" + std::string(text) + "\"", .want = want, .hint = ""});
}

}  // namespace

std::optional<double> parse_rate(std::string_view text) {
  if (text == "none") return std::nullopt;
  const std::optional<Quantity> quantity = split(text);
  const std::optional<double> unit = quantity ? rate_unit(quantity->unit) : std::nullopt;
  if (!unit) refuse("parse_rate", "rate of a link", text, "a rate as tc writes it (100mbit, 1gbit) or none");
  return quantity->number * *unit;
}

double parse_duration_s(std::string_view text) {
  const std::optional<Quantity> quantity = split(text);
  const std::optional<double> unit = quantity ? duration_unit(quantity->unit) : std::nullopt;
  if (!unit) refuse("parse_duration_s", "duration", text, "a number above 0 with us, ms, s, m or h (0.5ms, 5m)");
  return quantity->number * *unit;
}

LinkSpeed parse_link_speed(std::string_view text) {
  const std::size_t comma = text.find(',');
  LinkSpeed speed{.bytes_per_second = parse_rate(text.substr(0, comma))};
  if (comma != std::string_view::npos) speed.latency_s = parse_duration_s(text.substr(comma + 1));
  return speed;
}

}  // namespace thinwire
