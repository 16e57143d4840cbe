#include "thinwire/comm/probe_wire.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace thinwire::comm {
namespace {

constexpr std::string_view kMagic = "thinwire1";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <typename Number>
bool parse_number(std::string_view word, Number* number, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *number, base);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

std::string hex(std::uint64_t value) {
  char digits[17] = {};
  const auto [end, error] = std::to_chars(digits, digits + 16, value, 16);
  return std::string(digits, end);
}

// Splits "<header>\n<text>"; the header's last word is the number of bytes of the text.
Parsed split(std::string_view bytes, std::uint64_t nonce, std::size_t word_count, std::vector<std::string_view>* words,
             std::string_view* text) {
  const std::size_t common = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, common) != kMagic.substr(0, common)) return Parsed::kForeign;
  const std::size_t line_end = bytes.substr(0, kMaxProbeHeader).find('\n');
  if (line_end == std::string_view::npos)
    return bytes.size() < kMaxProbeHeader ? Parsed::kIncomplete : Parsed::kForeign;
  *words = words_of(bytes.substr(0, line_end));
  std::uint64_t their_nonce = 0;
  std::size_t length = 0;
  if (words->size() != word_count || !parse_number((*words)[1], &their_nonce, 16) || their_nonce != nonce ||
      !parse_number(words->back(), &length) || length > kMaxProbeText)
    return Parsed::kForeign;
  *text = bytes.substr(line_end + 1);
  if (text->size() > length) return Parsed::kForeign;
  return text->size() == length ? Parsed::kComplete : Parsed::kIncomplete;
}

// Names travel as one word of printable ASCII.
std::string as_word(std::string_view name) {
  std::string word(name.substr(0, 255));
  for (char& c : word)
    if (c <= ' ' || c > '~' || c == '=') c = '_';
  return word.empty() ? "-" : word;
}

std::string from_word(std::string_view word) {
  return word == "-" ? "" : std::string(word);
}

// "key=value" words, each key exactly once and in this order.
class FieldReader {
 public:
  explicit FieldReader(std::string_view line) : words_(words_of(line)) {}
  std::string_view next(std::string_view key) {
    if (at_ >= words_.size()) return fail();
    const std::string_view word = words_[at_++];
    if (word.size() <= key.size() + 1 || word.substr(0, key.size()) != key || word[key.size()] != '=') return fail();
    return word.substr(key.size() + 1);
  }
  template <typename Number>
  Number number(std::string_view key, Number low, Number high) {
    Number value = 0;
    if (!parse_number(next(key), &value) || value < low || value > high) fail();
    return value;
  }
  bool complete() const { return good_ && at_ == words_.size(); }

 private:
  std::string_view fail() {
    good_ = false;
    return {};
  }
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  bool good_ = true;
};

constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
constexpr int kMax32 = std::numeric_limits<int>::max();

}  // namespace

std::string encode_request(std::uint64_t nonce, const Request& request) {
  const std::string_view text = std::string_view(request.text).substr(0, kMaxProbeText);
  return std::string(kMagic) + " " + hex(nonce) + " " + std::to_string(static_cast<int>(request.kind)) + " " +
         std::to_string(request.from) + " " + std::to_string(text.size()) + "\n" + std::string(text);
}

std::string encode_answer(std::uint64_t nonce, std::string_view text) {
  text = text.substr(0, kMaxProbeText);
  return std::string(kMagic) + " " + hex(nonce) + " " + std::to_string(text.size()) + "\n" + std::string(text);
}

Parsed parse_request(std::string_view bytes, std::uint64_t nonce, Request* request) {
  std::vector<std::string_view> words;
  std::string_view text;
  const Parsed parsed = split(bytes, nonce, 5, &words, &text);
  if (parsed != Parsed::kComplete) return parsed;
  int kind = 0;
  if (!parse_number(words[2], &kind) || kind < 0 || kind > 2 || !parse_number(words[3], &request->from))
    return Parsed::kForeign;
  request->kind = static_cast<RequestKind>(kind);
  request->text = text;
  return parsed;
}

Parsed parse_answer(std::string_view bytes, std::uint64_t nonce, std::string* text) {
  std::vector<std::string_view> words;
  std::string_view payload;
  const Parsed parsed = split(bytes, nonce, 3, &words, &payload);
  if (parsed == Parsed::kComplete) *text = payload;
  return parsed;
}

std::string to_line(const RankState& s) {
  return "rank=" + std::to_string(s.rank) + " pid=" + std::to_string(s.pid) + " beat=" + std::to_string(s.beat) +
         " step=" + std::to_string(s.step) + " bucket=" + std::to_string(s.bucket) + " hop=" + std::to_string(s.hop) +
         " phase=" + std::to_string(static_cast<int>(s.phase)) +
         " failed=" + std::to_string(static_cast<int>(s.failed)) + " gap_ms=" + std::to_string(s.gap_ms) +
         " operation=" + as_word(s.operation) + " host=" + as_word(s.host);
}

std::optional<RankState> parse_rank_state(std::string_view line) {
  FieldReader read(line);
  RankState s;
  s.rank = read.number("rank", 0, kMax32);
  s.pid = read.number<std::int64_t>("pid", 0, kMax64);
  s.beat = read.number<std::int64_t>("beat", 0, kMax64);
  s.step = read.number<std::int64_t>("step", -1, kMax64);
  s.bucket = read.number("bucket", -1, kMax32);
  s.hop = read.number("hop", 0, 2);
  s.phase = static_cast<Phase>(read.number("phase", 0, 2));
  s.failed = static_cast<Failed>(read.number("failed", 0, 3));
  s.gap_ms = read.number<std::int64_t>("gap_ms", 0, kMax64);
  s.operation = from_word(read.next("operation"));
  std::replace(s.operation.begin(), s.operation.end(), '_', ' ');
  s.host = from_word(read.next("host"));
  return read.complete() ? std::optional(std::move(s)) : std::nullopt;
}

std::string to_line(const Endpoint& e) {
  return "rank=" + std::to_string(e.rank) + " address=" + as_word(e.address) + " port=" + std::to_string(e.port) +
         " nonce=" + hex(e.nonce) + " pid=" + std::to_string(e.pid) + " host=" + as_word(e.host);
}

std::optional<Endpoint> parse_endpoint(std::string_view line) {
  FieldReader read(line);
  Endpoint e;
  e.rank = read.number("rank", 0, kMax32);
  e.address = read.next("address");
  e.port = read.number("port", 1, 65535);
  const bool hexadecimal = parse_number(read.next("nonce"), &e.nonce, 16);
  e.pid = read.number<std::int64_t>("pid", 0, kMax64);
  e.host = from_word(read.next("host"));
  return hexadecimal && read.complete() ? std::optional(std::move(e)) : std::nullopt;
}

}  // namespace thinwire::comm
