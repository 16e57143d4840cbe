#include "thinwire/codec/spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <vector>

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

constexpr const char* kPlace = "codec::make_codec";
constexpr std::int64_t kScaleBytes = 4;

struct Known {
  std::string_view name;
  Spec defaults;
  bool takes_block;
  bool takes_scale;
};

constexpr std::array kKnown = {
    Known{"bf16", {Kind::kBf16, 1, BlockScale::kRms}, false, false},
    Known{"fp32", {Kind::kFp32, 1, BlockScale::kRms}, false, false},
    Known{"int4", {Kind::kInt4, 128, BlockScale::kRms}, true, false},
    Known{"int8", {Kind::kInt8, 128, BlockScale::kRms}, true, false},
    Known{"one_bit", {Kind::kOneBit, kUnitElements, BlockScale::kRms}, true, true},
};

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

const Known& known_by_name(std::string_view name) {
  for (const Known& known : kKnown)
    if (known.name == name) return known;
  std::vector<std::string_view> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  fail_choice("codec name", name, names);
}

const Known& known_by_kind(Kind kind) {
  return *std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) { return known.defaults.kind == kind; });
}

std::int64_t parse_block(std::string_view value) {
  std::int64_t block = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), block);
  if (error == std::errc() && end == value.data() + value.size() && block >= 1 && kUnitElements % block == 0)
    return block;
  fail(ErrorCode::kInvalidArgument, {.place = kPlace,
                                     .what = "option block",
                                     .got = "\"" + std::string(value) + "\"",
                                     .want = "a number that divides 2048",
                                     .hint = "128"});
}

BlockScale parse_scale(std::string_view value) {
  if (value == "rms") return BlockScale::kRms;
  if (value == "mean_abs") return BlockScale::kMeanAbs;
  fail_choice("option scale", value, {"mean_abs", "rms"});
}

void apply_option(const Known& known, std::string_view option, Spec& spec) {
  const std::size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  if (key == "block" && known.takes_block) {
    spec.block = parse_block(value);
  } else if (key == "scale" && known.takes_scale) {
    spec.scale = parse_scale(value);
  } else {
    std::vector<std::string_view> keys;
    if (known.takes_block) keys.push_back("block");
    if (known.takes_scale) keys.push_back("scale");
    fail_choice("option of " + std::string(known.name), key, keys);
  }
}

}  // namespace

Spec spec_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Known& known = known_by_name(text.substr(0, colon));
  Spec spec = known.defaults;
  if (colon == std::string_view::npos) return spec;
  for (std::string_view rest = text.substr(colon + 1);;) {
    const std::size_t comma = rest.find(',');
    apply_option(known, rest.substr(0, comma), spec);
    if (comma == std::string_view::npos) return spec;
    rest.remove_prefix(comma + 1);
  }
}

std::string to_text(const Spec& spec) {
  const Known& known = known_by_kind(spec.kind);
  std::string text(known.name);
  if (known.takes_scale) text += spec.scale == BlockScale::kRms ? ":scale=rms" : ":scale=mean_abs";
  if (known.takes_block) text += (known.takes_scale ? ",block=" : ":block=") + std::to_string(spec.block);
  return text;
}

std::int64_t block_bytes(const Spec& spec, std::int64_t elements) {
  switch (spec.kind) {
    case Kind::kFp32:
      return 4 * elements;
    case Kind::kBf16:
      return 2 * elements;
    case Kind::kInt8:
      return kScaleBytes + elements;
    case Kind::kInt4:
      return kScaleBytes + (elements + 1) / 2;
    case Kind::kOneBit:
      return kScaleBytes + (elements + 7) / 8;
  }
  return 0;
}

std::int64_t piece_bytes(const Spec& spec, std::int64_t elements) {
  const std::int64_t whole = elements / spec.block;
  const std::int64_t rest = elements % spec.block;
  return whole * block_bytes(spec, spec.block) + (rest > 0 ? block_bytes(spec, rest) : 0);
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
  for (const Known& known : kKnown) names.emplace_back(known.name);
  return names;
}

}  // namespace thinwire::codec
