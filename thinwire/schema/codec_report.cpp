#include "thinwire/schema/codec_report.hpp"

#include "thinwire/base/file.hpp"
#include "thinwire/schema/fields.hpp"

namespace thinwire::schema {

template <>
struct FieldsOf<CodecRow> {
  static void visit(auto& row, auto&& field) {
    field("codec", row.codec);
    field("implementation", row.implementation);
    field("dtype", row.dtype);
    field("op", row.op);
    field("gb_per_s", row.gb_per_s);
    field("vs_memcpy", row.vs_memcpy);
    field("bits_per_element", row.bits_per_element);
    field("error", row.error);
    field("error_student_t", row.error_student_t);
    field("error_sparse", row.error_sparse);
    field("error_gradient", row.error_gradient);
  }
};

template <>
struct FieldsOf<CodecReport> {
  static void visit(auto& report, auto&& field) {
    field("elements", report.elements);
    field("memcpy_gb_per_s", report.memcpy_gb_per_s);
    field("gradients", report.gradients);
    field("rows", report.rows);
  }
};

std::string to_json(const CodecReport& report) {
  return object_of(report).dump(2) + "\n";
}

CodecReport codec_report_from_json(const std::string& text) {
  constexpr const char* kPlace = "schema::codec_report";
  return struct_of<CodecReport>(kPlace, "", parse_json(kPlace, text));
}

void write_codec_report(const CodecReport& report, const std::string& path) {
  write_file_atomically(path, to_json(report));
}

}  // namespace thinwire::schema
