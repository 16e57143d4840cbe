#include "thinwire/codec/error_feedback.hpp"

#include <algorithm>
#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

std::size_t checked(std::int64_t elements) {
  if (elements >= 0) return static_cast<std::size_t>(elements);
  fail(ErrorCode::kInvalidArgument, {.place = "codec::ErrorFeedback",
                                     .what = "number of elements",
                                     .got = std::to_string(elements),
                                     .want = "at least 0",
                                     .hint = ""});
}

}  // namespace

ErrorFeedback::ErrorFeedback(std::int64_t elements)
    : copies_{std::vector<float>(checked(elements)), std::vector<float>(checked(elements))} {}

void ErrorFeedback::keep(std::int64_t begin, std::int64_t count) {
  if (begin < 0 || count < 0 || count > size() - begin) {
    fail(ErrorCode::kInvalidArgument, {.place = "codec::ErrorFeedback::keep",
                                       .what = "range",
                                       .got = std::to_string(count) + " elements from " + std::to_string(begin),
                                       .want = "inside 0 ... " + std::to_string(size()),
                                       .hint = ""});
  }
  std::copy_n(copies_[current_].begin() + begin, count, copies_[1 - current_].begin() + begin);
}

void ErrorFeedback::rescale(float factor) {
  for (float& value : copies_[current_]) value *= factor;
}

void ErrorFeedback::restore(std::span<const float> values) {
  if (values.size() != copies_[current_].size()) {
    fail(ErrorCode::kInvalidArgument, {.place = "codec::ErrorFeedback::restore",
                                       .what = "number of values",
                                       .got = std::to_string(values.size()),
                                       .want = std::to_string(size()),
                                       .hint = ""});
  }
  std::copy(values.begin(), values.end(), copies_[current_].begin());
}

}  // namespace thinwire::codec
