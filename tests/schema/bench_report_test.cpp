#include "thinwire/schema/bench_report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace thinwire::schema {
namespace {

using Json = nlohmann::ordered_json;

// The document as the command's contract prints it.
const char* const kDocument = R"({"link": "1gbit", "ranks": 2, "emulated": false, "rows": [
  {"contender": "compute", "median_s": 0.25, "min_s": 0.2, "max_s": 0.5, "exposed_s": null, "sent_bytes": 0,
   "vs_torch_ddp": 2.6, "vs_compute": 1.0},
  {"contender": "one_bit", "median_s": 0.33, "min_s": 0.32, "max_s": 0.34, "exposed_s": 0.08, "sent_bytes": 1401234,
   "vs_torch_ddp": null, "vs_compute": 0.7575757575757576},
  {"contender": "torch-ddp", "median_s": 0.5, "min_s": 0.5, "max_s": 0.5, "exposed_s": 0.2, "sent_bytes": null,
   "vs_torch_ddp": 1.0, "vs_compute": 0.5}]})";

TEST(BenchReport, ReadsTheDocument) {
  const BenchReport report = bench_report_from_json(kDocument);
  EXPECT_EQ(report.link, "1gbit");
  EXPECT_EQ(report.ranks, 2);
  EXPECT_FALSE(report.emulated);
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].contender, "compute");
  EXPECT_EQ(report.rows[0].exposed_s, std::nullopt);
  EXPECT_EQ(report.rows[0].median_s, 0.25);
  EXPECT_EQ(report.rows[0].min_s, 0.2);
  EXPECT_EQ(report.rows[0].max_s, 0.5);
  EXPECT_EQ(report.rows[0].vs_torch_ddp, 2.6);
  EXPECT_EQ(report.rows[1].exposed_s, 0.08);
  EXPECT_EQ(report.rows[1].sent_bytes, 1'401'234);
  EXPECT_EQ(report.rows[2].sent_bytes, std::nullopt);
  EXPECT_EQ(report.rows[1].vs_torch_ddp, std::nullopt);
  EXPECT_EQ(report.rows[1].vs_compute, 0.7575757575757576);
}

TEST(BenchReport, WritesTheDocumentInTheSameOrder) {
  const std::string text = to_json(bench_report_from_json(kDocument));
  EXPECT_EQ(Json::parse(text).dump(), Json::parse(kDocument).dump());
  EXPECT_EQ(text.back(), '\n');
}

TEST(BenchReport, NamesWhatIsMissingUnknownOrWrong) {
  const auto refusal = [](const char* pointer, const Json& value) -> std::string {
    Json json = Json::parse(kDocument);
    json[Json::json_pointer(pointer)] = value;
    try {
      bench_report_from_json(json.dump());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("/rows/1/min_s", "fast"),
            "[schema::bench_report] field rows[1].min_s; got a string, want a number");
  EXPECT_EQ(refusal("/rows/0/speed", 1),
            "[schema::bench_report] field rows[0].speed; got a number, want no such field");
  EXPECT_EQ(refusal("/rows/0", Json::object()),
            "[schema::bench_report] field rows[0].contender; got nothing, want a value");
  EXPECT_EQ(refusal("/ranks", nullptr), "[schema::bench_report] field ranks; got null, want an integer");
}

TEST(BenchReport, IsWrittenToAFile) {
  const std::string path = (std::filesystem::temp_directory_path() / "thinwire_bench_report_test.json").string();
  const BenchReport report = bench_report_from_json(kDocument);
  write_bench_report(report, path);
  EXPECT_EQ(read_text_file(path), to_json(report));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace thinwire::schema
