// What a wrong call is told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire::train {

// The message of the Error that `call` throws; fails when it throws none or another code.
inline std::string refusal(ErrorCode code, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace thinwire::train
