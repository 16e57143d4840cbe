#include "thinwire/base/parse.hpp"

#include <gtest/gtest.h>

#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire {
namespace {

TEST(ParseRate, ReadsWhatTcReads) {
  EXPECT_EQ(parse_rate("none"), std::nullopt);
  EXPECT_DOUBLE_EQ(*parse_rate("100mbit"), 12.5e6);
  EXPECT_DOUBLE_EQ(*parse_rate("1gbit"), 125e6);
  EXPECT_DOUBLE_EQ(*parse_rate("300Mbit"), 37.5e6);
  EXPECT_DOUBLE_EQ(*parse_rate("2.5gbit"), 312.5e6);
  EXPECT_DOUBLE_EQ(*parse_rate("8000"), 1000);
  EXPECT_DOUBLE_EQ(*parse_rate("8bit"), 1);
  EXPECT_DOUBLE_EQ(*parse_rate("1mibit"), 131072);
  EXPECT_DOUBLE_EQ(*parse_rate("3kbps"), 3000);
  EXPECT_DOUBLE_EQ(*parse_rate("1tbit"), 125e9);
}

TEST(ParseRate, RefusesTheRest) {
  for (const char* text : {"", "mbit", "0mbit", "-1mbit", "100 mbit", "100mb", "100xbit", "infmbit", "nan", "1e3mbit",
                           "100mbit/s", "ibit", "5ibit", "None"}) {
    EXPECT_THROW(parse_rate(text), Error) << text;
  }
  try {
    parse_rate("fast");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[parse_rate] rate of a link; got \"fast\", want a rate as tc writes it (100mbit, 1gbit) or none");
  }
}

TEST(ParseDuration, ReadsUnits) {
  EXPECT_DOUBLE_EQ(parse_duration_s("50us"), 50e-6);
  EXPECT_DOUBLE_EQ(parse_duration_s("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_duration_s("30s"), 30);
  EXPECT_DOUBLE_EQ(parse_duration_s("30"), 30);
  EXPECT_DOUBLE_EQ(parse_duration_s("5m"), 300);
  EXPECT_DOUBLE_EQ(parse_duration_s("1.5h"), 5400);
  for (const char* text : {"", "s", "0s", "-5s", "5d", "5 s", "inf"})
    EXPECT_THROW(parse_duration_s(text), Error) << text;
}

TEST(ParseLinkSpeed, ReadsARateAndPerhapsALatency) {
  EXPECT_EQ(parse_link_speed("100Mbit").bytes_per_second, 12.5e6);
  EXPECT_EQ(parse_link_speed("100mbit").latency_s, 0);
  EXPECT_EQ(parse_link_speed("1gbit,0.5ms").bytes_per_second, 125e6);
  EXPECT_DOUBLE_EQ(parse_link_speed("1gbit,0.5ms").latency_s, 0.5e-3);
  EXPECT_EQ(parse_link_speed("none,1s").bytes_per_second, std::nullopt);
  for (const char* text : {"", ",", ",1ms", "1gbit,", "1gbit,-1ms", "1gbit,1ms,", "1gbit, 1ms"})
    EXPECT_THROW(parse_link_speed(text), Error) << text;
}

}  // namespace
}  // namespace thinwire
