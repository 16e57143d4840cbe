#include "thinwire/schema/step_report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "thinwire/base/error.hpp"

namespace thinwire::schema {
namespace {

using Json = nlohmann::json;

StepReport example() {
  StepReport report;
  report.step = 41;
  report.optimizer_stage = "one_bit";
  report.sent_bytes = 1'234'567'890'123;
  report.compression_ratio = 29.7;
  report.exposed_s = 0.1;
  report.update_s = 1e-9;
  report.grad_norm = 0.3333333333333333;
  report.clip_factor = 0.5;
  report.skipped = true;
  report.buckets = {{0, "dense", "fp32", 100, 400, 0.01, 0.02, 0.03, 0, 0.04, 0},
                    {1, "body", "one_bit:scale=rms,block=2048", 4096, 536, 0.05, 0.06, 0.07, 0.075, 0.08, 0.9}};
  return report;
}

std::string refusal(const Json& json) {
  try {
    step_report_from_json(json.dump());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  return "accepted";
}

TEST(StepReport, ComesBackFromOneLine) {
  const std::string line = to_json_line(example());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const StepReport back = step_report_from_json(line);
  EXPECT_EQ(to_json_line(back), line);
  EXPECT_EQ(back.step, 41);
  EXPECT_EQ(back.sent_bytes, 1'234'567'890'123);
  EXPECT_EQ(back.grad_norm, 0.3333333333333333) << "every bit of a number survives";
  EXPECT_TRUE(back.skipped);
  ASSERT_EQ(back.buckets.size(), 2U);
  EXPECT_EQ(back.buckets[1].codec, "one_bit:scale=rms,block=2048");
  EXPECT_EQ(back.buckets[1].residual_ratio, 0.9);
  EXPECT_EQ(step_report_from_json(to_json_line({})).buckets.size(), 0U);
}

// The names in the file are the names of the struct; each value must land in its own field.
TEST(StepReport, FieldsCarryTheNamesOfTheStruct) {
  const Json json = Json::parse(to_json_line(example()));
  EXPECT_EQ(json.at("step"), 41);
  EXPECT_EQ(json.at("optimizer_stage"), "one_bit");
  EXPECT_EQ(json.at("exposed_s"), 0.1);
  EXPECT_EQ(json.at("update_s"), 1e-9);
  EXPECT_EQ(json.at("clip_factor"), 0.5);
  EXPECT_EQ(json.at("compression_ratio"), 29.7);
  EXPECT_EQ(json.at("skipped"), true);
  const Json& bucket = json.at("buckets").at(1);
  EXPECT_EQ(bucket.at("bucket"), 1);
  EXPECT_EQ(bucket.at("group"), "body");
  EXPECT_EQ(bucket.at("elements"), 4096);
  EXPECT_EQ(bucket.at("sent_bytes"), 536);
  EXPECT_EQ(bucket.at("ready_s"), 0.05);
  EXPECT_EQ(bucket.at("encode_s"), 0.06);
  EXPECT_EQ(bucket.at("exchange_s"), 0.07);
  EXPECT_EQ(bucket.at("reduce_s"), 0.075);
  EXPECT_EQ(bucket.at("decode_s"), 0.08);
}

TEST(StepReport, EveryMissingFieldIsNamedWithItsPath) {
  const Json whole = Json::parse(to_json_line(example()));
  for (const auto& [name, value] : whole.items()) {
    Json json = whole;
    json.erase(name);
    EXPECT_NE(refusal(json).find("field " + name + "; got nothing"), std::string::npos) << refusal(json);
  }
  for (const auto& [name, value] : whole.at("buckets").at(1).items()) {
    Json json = whole;
    json.at("buckets").at(1).erase(name);
    EXPECT_NE(refusal(json).find("field buckets[1]." + name + "; got nothing"), std::string::npos) << refusal(json);
  }
}

TEST(StepReport, UnknownFieldsAndWrongTypesAreNamedWithTheirPath) {
  const Json whole = Json::parse(to_json_line(example()));
  const auto changed = [&](const char* pointer, const Json& value) {
    Json json = whole;
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_EQ(changed("/new", 1), "[schema::step_report] field new; got a number, want no such field");
  EXPECT_EQ(changed("/buckets/0/new", "x"),
            "[schema::step_report] field buckets[0].new; got a string, want no such field");
  EXPECT_EQ(changed("/step", "41"), "[schema::step_report] field step; got a string, want an integer");
  EXPECT_EQ(changed("/step", 1.5), "[schema::step_report] field step; got 1.5, want an integer");
  EXPECT_EQ(changed("/skipped", 1), "[schema::step_report] field skipped; got a number, want true or false");
  EXPECT_EQ(changed("/buckets", 1), "[schema::step_report] field buckets; got a number, want an array");
  EXPECT_EQ(changed("/buckets/1", 1), "[schema::step_report] field buckets[1]; got a number, want an object");
  EXPECT_NE(changed("/sent_bytes", 18446744073709551615ULL).find("field sent_bytes"), std::string::npos);
  EXPECT_NE(changed("/buckets/0/bucket", 1LL << 40).find("field buckets[0].bucket"), std::string::npos);
  EXPECT_NE(refusal(Json::array()).find("document"), std::string::npos);
}

TEST(StepReport, CutLinesAreCorruptNeverACrash) {
  const std::string line = to_json_line(example());
  for (std::size_t size = 0; size < line.size(); ++size) {
    try {
      step_report_from_json(line.substr(0, size));
      FAIL() << "accepted the first " << size << " characters";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(StepReport, WhatIsNotFiniteIsNullAndReadsAsNan) {
  StepReport report = example();
  report.grad_norm = std::numeric_limits<double>::infinity();
  const std::string line = to_json_line(report);
  EXPECT_TRUE(Json::parse(line).at("grad_norm").is_null());
  EXPECT_TRUE(std::isnan(step_report_from_json(line).grad_norm));
}

}  // namespace
}  // namespace thinwire::schema
