#include "thinwire/codec/message.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

using Room = std::array<std::byte, 20>;

TEST(MessageHeader, ComesBackAndLiesInLittleEndianOrder) {
  Room room{};
  write_header({.flags = 0x80000002U, .bucket = 0x01020304, .step = 7}, room);
  const MessageHeader header = read_header(room, {.bucket = 0x01020304, .step = 7}, 3);
  EXPECT_EQ(header.flags, 0x80000002U);
  EXPECT_EQ(room[0], std::byte{'T'});
  EXPECT_EQ(room[3], std::byte{'1'});
  EXPECT_EQ(room[8], std::byte{4});
  EXPECT_EQ(room[11], std::byte{1});
  EXPECT_EQ(room[16], std::byte{0}) << "written past the header";
}

TEST(MessageHeader, SaysWhichRankSentWhat) {
  Room room{};
  write_header({.bucket = 5, .step = 7}, room);
  const auto refusal = [&](const MessageHeader& want) -> std::string {
    try {
      read_header(room, want, 3);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.bucket = 6, .step = 7}),
            "[codec::read_header] bucket of the message from rank 3; got 5, want 6; try the same program, version and "
            "settings on every rank");
  EXPECT_NE(refusal({.bucket = 5, .step = 8}).find("step of the message"), std::string::npos);
  room[0] = std::byte{0};
  EXPECT_NE(refusal({.bucket = 5, .step = 7}).find("magic"), std::string::npos);
}

TEST(MessageHeader, TooFewBytesAreCorrupt) {
  Room room{};
  try {
    read_header(std::span(room).first(15), {}, 0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  }
  EXPECT_THROW(write_header({}, std::span(room).first(15)), Error);
}

}  // namespace
}  // namespace thinwire::codec
