#include "thinwire/schema/bench_report.hpp"

#include "thinwire/base/file.hpp"
#include "thinwire/schema/fields.hpp"

namespace thinwire::schema {
namespace {

constexpr const char* kPlace = "schema::bench_report";

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const BenchRow& row) {
  return {{"contender", row.contender},
          {"median_s", row.median_s},
          {"min_s", row.min_s},
          {"max_s", row.max_s},
          {"exposed_s", number_or_null(row.exposed_s)},
          {"sent_bytes", row.sent_bytes},
          {"vs_torch_ddp", number_or_null(row.vs_torch_ddp)},
          {"vs_compute", number_or_null(row.vs_compute)}};
}

BenchRow row_from_json(const std::string& path, const Json& json) {
  Fields fields(kPlace, path, json);
  BenchRow row;
  row.contender = fields.text("contender");
  row.median_s = fields.number("median_s");
  row.min_s = fields.number("min_s");
  row.max_s = fields.number("max_s");
  row.exposed_s = fields.number_or_null("exposed_s");
  row.sent_bytes = fields.integer("sent_bytes");
  row.vs_torch_ddp = fields.number_or_null("vs_torch_ddp");
  row.vs_compute = fields.number_or_null("vs_compute");
  fields.finish();
  return row;
}

}  // namespace

std::string to_json(const BenchReport& report) {
  Json json = {{"link", report.link}, {"ranks", report.ranks}, {"emulated", report.emulated}, {"rows", Json::array()}};
  for (const BenchRow& row : report.rows) json["rows"].push_back(to_json(row));
  return json.dump(2) + "\n";
}

BenchReport bench_report_from_json(const std::string& text) {
  const Json json = parse_json(kPlace, text);
  Fields fields(kPlace, "", json);
  BenchReport report;
  report.link = fields.text("link");
  report.ranks = fields.small_integer("ranks");
  report.emulated = fields.boolean("emulated");
  for (const Json& row : fields.array("rows"))
    report.rows.push_back(row_from_json("rows[" + std::to_string(report.rows.size()) + "]", row));
  fields.finish();
  return report;
}

void write_bench_report(const BenchReport& report, const std::string& path) {
  write_file_atomically(path, to_json(report));
}

}  // namespace thinwire::schema
