#include "examples/training/ranges.hpp"

#include <charconv>
#include <optional>
#include <sstream>
#include <string>

namespace examples {
namespace {

// Nothing unless `text` is a number from its first to its last character and fits.
template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

template <class Number>
CLI::Validator within(const char* what, Number from, Number to, const std::string& range) {
  return {[=](std::string& text) -> std::string {
            const std::optional<Number> value = parsed<Number>(text);
            if (value && *value >= from && *value <= to) return "";
            return "got " + text + ", want " + what + " " + range;
          },
          range};
}

std::string from_to(double from, double to) {
  std::ostringstream text;
  if (to == std::numeric_limits<double>::max()) {
    text << "of at least " << from;
  } else {
    text << "from " << from << " to " << to;
  }
  return text.str();
}

}  // namespace

CLI::Validator whole_number(std::int64_t from, std::int64_t to) {
  return within("a whole number", from, to, "from " + std::to_string(from) + " to " + std::to_string(to));
}

CLI::Validator unsigned_number() {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return within("a whole number", std::uint64_t{0}, kMost, "from 0 to " + std::to_string(kMost));
}

CLI::Validator number(double from, double to) {
  return within("a number", from, to, from_to(from, to));
}

CLI::Validator not_empty() {
  return {[](std::string& text) -> std::string { return text.empty() ? "got an empty name, want one" : ""; }, "PATH"};
}

}  // namespace examples
