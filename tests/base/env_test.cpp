#include "thinwire/base/env.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "thinwire/base/error.hpp"

namespace thinwire {
namespace {

constexpr const char* kName = "THINWIRE_ENV_TEST";

class Env : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv(kName); }
  static void set(const char* value) { ::setenv(kName, value, 1); }
};

TEST_F(Env, AbsentAndEmptyAreNothing) {
  EXPECT_EQ(env_text(kName), std::nullopt);
  EXPECT_EQ(env_int64(kName, 0, 9), std::nullopt);
  set("");
  EXPECT_EQ(env_text(kName), std::nullopt);
  EXPECT_EQ(env_int64(kName, 0, 9), std::nullopt);
}

TEST_F(Env, ReadsTextAndNumbersUpToTheLimits) {
  set("a b");
  EXPECT_EQ(env_text(kName), "a b");
  for (const char* text : {"-3", "0", "7"}) {
    set(text);
    EXPECT_EQ(env_int64(kName, -3, 7), std::atoi(text));
  }
}

TEST_F(Env, NamesVariableValueAndRange) {
  for (const char* text : {"8", "-4", "x", "7x", " 7", "7.0", "99999999999999999999", "+7"}) {
    set(text);
    try {
      env_int64(kName, -3, 7);
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.what(), "[environment] variable THINWIRE_ENV_TEST; got \"" + std::string(text) +
                                  "\", want a whole number from -3 to 7");
    }
  }
}

}  // namespace
}  // namespace thinwire
