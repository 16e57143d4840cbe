// A text file as a sequence of small integers, cut into a training and a validation part.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace examples {

struct TextCorpus {
  std::string characters;  // the bytes that occur in the text, sorted; a token is a place in here
  at::Tensor train;        // the first 90 %, uint8
  at::Tensor validation;   // the rest
};

// Any file works; a character is a byte. Throws thinwire::Error kNotFound, kIo, kInvalidArgument (a part of the text is
// not longer than `window`).
TextCorpus read_text_corpus(const std::string& path, std::int64_t window);

struct TokenBatch {
  at::Tensor input;   // int64, [number of starts, window]
  at::Tensor target;  // the same, one character further
};

// REQUIRES: 0 <= start and start + window < tokens.numel() for every start.
TokenBatch windows_at(const at::Tensor& tokens, std::span<const std::int64_t> starts, std::int64_t window);

// Number of different windows, that is of allowed starts.
std::int64_t window_count(const at::Tensor& tokens, std::int64_t window);

// `count` starts spread evenly over the tokens: the same set for every rank and every run.
std::vector<std::int64_t> spread_starts(const at::Tensor& tokens, std::int64_t window, std::int64_t count);

}  // namespace examples
