#include "thinwire/codec/spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include "thinwire/base/error.hpp"
#include "thinwire/codec/format.hpp"

namespace thinwire::codec {
namespace {

constexpr const char* kPlace = "codec::make_codec";

// Levenshtein's distance, one row at a time.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void fail_choice(const std::string& what, std::string_view got,
                              const std::vector<std::string_view>& choices) {
  std::string want = choices.empty() ? "no options" : "one of";
  for (std::string_view choice : choices) want += " " + std::string(choice);
  std::string hint;
  if (!choices.empty()) {
    hint = *std::min_element(choices.begin(), choices.end(),
                             [&](auto a, auto b) { return edits_between(a, got) < edits_between(b, got); });
  }
  fail(ErrorCode::kInvalidArgument,
       {.place = kPlace, .what = what, .got = "\"" + std::string(got) + "\"", .want = want, .hint = hint});
}

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

const Format& format_by_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Format* format : formats()) {
    if (format->name == name) return *format;
    names.push_back(format->name);
  }
  fail_choice("codec name", name, names);
}

std::string wanted_number(const OptionRule& rule) {
  if (rule.cuts_unit) {
    return "a number from " + number_text(rule.least) + " that divides " + std::to_string(kUnitElements);
  }
  return std::string(rule.whole ? "a whole number" : "a number") + " from " + number_text(rule.least) + " to " +
         number_text(rule.most);
}

double parse_number(const OptionRule& rule, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool fits = error == std::errc() && end == text.data() + text.size() && value >= rule.least && value <= rule.most;
  if (fits && (rule.whole || rule.cuts_unit)) fits = value == std::floor(value);
  if (fits && rule.cuts_unit) fits = kUnitElements % static_cast<std::int64_t>(value) == 0;
  if (fits) return value;
  fail(ErrorCode::kInvalidArgument, {.place = kPlace,
                                     .what = "option " + std::string(rule.key),
                                     .got = "\"" + std::string(text) + "\"",
                                     .want = wanted_number(rule),
                                     .hint = number_text(rule.default_value)});
}

double parse_value(const OptionRule& rule, std::string_view text) {
  if (rule.choices.empty()) return parse_number(rule, text);
  const auto found = std::find(rule.choices.begin(), rule.choices.end(), text);
  if (found != rule.choices.end()) return static_cast<double>(found - rule.choices.begin());
  fail_choice("option " + std::string(rule.key), text, {rule.choices.begin(), rule.choices.end()});
}

void apply_option(std::string_view option, Spec& spec) {
  const std::size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < spec.format->options.size(); ++i) {
    const OptionRule& rule = spec.format->options[i];
    if (rule.key == key) {
      spec.options[i] = parse_value(rule, value);
      return;
    }
    keys.push_back(rule.key);
  }
  fail_choice("option of " + std::string(spec.format->name), key, keys);
}

void set_block(Spec& spec) {
  spec.block = spec.format->default_block;
  for (std::size_t i = 0; i < spec.format->options.size(); ++i)
    if (spec.format->options[i].key == "block") spec.block = static_cast<std::int64_t>(spec.options[i]);
}

}  // namespace

Spec spec_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  Spec spec;
  spec.format = &format_by_name(text.substr(0, colon));
  for (std::size_t i = 0; i < spec.format->options.size(); ++i) spec.options[i] = spec.format->options[i].default_value;
  for (std::size_t at = colon; at != std::string_view::npos;) {
    const std::size_t next = text.find(',', at + 1);
    apply_option(text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1), spec);
    at = next;
  }
  set_block(spec);
  return spec;
}

std::string to_text(const Spec& spec) {
  std::string text(spec.format->name);
  for (std::size_t i = 0; i < spec.format->options.size(); ++i) {
    const OptionRule& rule = spec.format->options[i];
    text += (i == 0 ? ":" : ",") + std::string(rule.key) + "=";
    text += rule.choices.empty() ? number_text(spec.options[i]) : std::string(rule.choices[spec.choice(i)]);
  }
  return text;
}

std::int64_t piece_bytes(const Spec& spec, std::int64_t elements) {
  const std::int64_t whole = elements / spec.block;
  const std::int64_t rest = elements % spec.block;
  return (whole > 0 ? whole * spec.format->block_bytes(spec, spec.block) : 0) +
         (rest > 0 ? spec.format->block_bytes(spec, rest) : 0);
}

std::int64_t segments_bytes(const Spec& spec, Segments segments) {
  segments_elements(segments);
  std::int64_t bytes = 0;
  for (std::int64_t length : segments) bytes += piece_bytes(spec, length);
  return bytes;
}

std::int64_t segments_elements(Segments segments) {
  std::int64_t elements = 0;
  for (std::int64_t length : segments) {
    if (length < 0) {
      fail(ErrorCode::kInvalidArgument, {.place = "codec",
                                         .what = "length of a segment",
                                         .got = std::to_string(length),
                                         .want = "at least 0",
                                         .hint = ""});
    }
    elements += length;
  }
  return elements;
}

std::vector<std::string> known_codecs() {
  std::vector<std::string> names;
  for (const Format* format : formats()) names.emplace_back(format->name);
  return names;
}

}  // namespace thinwire::codec
