#include "thinwire/base/env.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

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
  set("");
  EXPECT_EQ(env_text(kName), std::nullopt);
}

TEST_F(Env, ReadsText) {
  set("a b");
  EXPECT_EQ(env_text(kName), "a b");
}

}  // namespace
}  // namespace thinwire
