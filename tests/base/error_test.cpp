#include "thinwire/base/error.hpp"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(ErrorText, LeavesOutEmptyParts) {
  const auto text = [](const char* got, const char* want, const char* hint) {
    return format({.place = "p", .what = "w", .got = got, .want = want, .hint = hint});
  };
  EXPECT_EQ(text("g", "x", "h"), "[p] w; got g, want x; try h");
  EXPECT_EQ(text("", "x", ""), "[p] w; want x");
  EXPECT_EQ(text("g", "", ""), "[p] w; got g");
  EXPECT_EQ(text("", "", "h"), "[p] w; try h");
}

TEST(ErrorText, FailThrowsTheCode) {
  try {
    fail(ErrorCode::kState, {.place = "p", .what = "w", .got = "", .want = "", .hint = ""});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kState);
    EXPECT_EQ(to_string(error.code()), "state");
  }
}

}  // namespace
}  // namespace thinwire
