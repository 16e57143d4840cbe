#include "examples/data/text_corpus.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <array>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace examples {
namespace {

using thinwire::ErrorCode;

std::string distinct_characters(std::string text) {
  auto less = [](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); };
  std::sort(text.begin(), text.end(), less);
  text.erase(std::unique(text.begin(), text.end()), text.end());
  return text;
}

at::Tensor tokens_of(const std::string& text, const std::string& characters) {
  std::array<std::uint8_t, 256> token{};
  for (std::size_t i = 0; i < characters.size(); ++i)
    token[static_cast<unsigned char>(characters[i])] = static_cast<std::uint8_t>(i);
  at::Tensor tokens = torch::empty({static_cast<std::int64_t>(text.size())}, torch::kUInt8);
  std::transform(text.begin(), text.end(), tokens.mutable_data_ptr<std::uint8_t>(),
                 [&](char c) { return token[static_cast<unsigned char>(c)]; });
  return tokens;
}

}  // namespace

TextCorpus read_text_corpus(const std::string& path, std::int64_t window) {
  const std::string text = thinwire::read_text_file(path);
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t train_size = size * 9 / 10;
  if (size - train_size <= window)
    thinwire::fail(ErrorCode::kInvalidArgument, {.place = "text",
                                                 .what = path + " is too short",
                                                 .got = std::to_string(size) + " characters",
                                                 .want = "more than " + std::to_string(10 * (window + 1)),
                                                 .hint = "a longer text or a smaller --window"});
  TextCorpus corpus{.characters = distinct_characters(text), .train = {}, .validation = {}};
  const at::Tensor tokens = tokens_of(text, corpus.characters);
  corpus.train = tokens.slice(0, 0, train_size);
  corpus.validation = tokens.slice(0, train_size);
  return corpus;
}

TokenBatch windows_at(const at::Tensor& tokens, std::span<const std::int64_t> starts, std::int64_t window) {
  const auto count = static_cast<std::int64_t>(starts.size());
  const at::Tensor windows = torch::empty({count, window + 1}, torch::kInt64);
  const std::uint8_t* source = tokens.const_data_ptr<std::uint8_t>();
  std::int64_t* target = windows.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t start : starts) target = std::copy_n(source + start, window + 1, target);
  return {windows.slice(1, 0, window).contiguous(), windows.slice(1, 1).contiguous()};
}

std::int64_t window_count(const at::Tensor& tokens, std::int64_t window) {
  return tokens.numel() - window;
}

std::vector<std::int64_t> spread_starts(const at::Tensor& tokens, std::int64_t window, std::int64_t count) {
  const std::int64_t possible = window_count(tokens, window);
  std::vector<std::int64_t> starts(std::min(count, possible));
  for (std::size_t i = 0; i < starts.size(); ++i)
    starts[i] = static_cast<std::int64_t>(i) * possible / static_cast<std::int64_t>(starts.size());
  return starts;
}

}  // namespace examples
