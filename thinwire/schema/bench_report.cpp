#include "thinwire/schema/bench_report.hpp"

#include "thinwire/base/file.hpp"
#include "thinwire/schema/fields.hpp"

namespace thinwire::schema {

template <>
struct FieldsOf<BenchRow> {
  static void visit(auto& row, auto&& field) {
    field("contender", row.contender);
    field("median_s", row.median_s);
    field("min_s", row.min_s);
    field("max_s", row.max_s);
    field("exposed_s", row.exposed_s);
    field("sent_bytes", row.sent_bytes);
    field("vs_torch_ddp", row.vs_torch_ddp);
    field("vs_compute", row.vs_compute);
  }
};

template <>
struct FieldsOf<BenchReport> {
  static void visit(auto& report, auto&& field) {
    field("link", report.link);
    field("ranks", report.ranks);
    field("emulated", report.emulated);
    field("rows", report.rows);
  }
};

std::string to_json(const BenchReport& report) {
  return object_of(report).dump(2) + "\n";
}

BenchReport bench_report_from_json(const std::string& text) {
  constexpr const char* kPlace = "schema::bench_report";
  return struct_of<BenchReport>(kPlace, "", parse_json(kPlace, text));
}

void write_bench_report(const BenchReport& report, const std::string& path) {
  write_file_atomically(path, to_json(report));
}

}  // namespace thinwire::schema
