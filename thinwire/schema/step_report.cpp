#include "thinwire/schema/step_report.hpp"

#include "thinwire/schema/fields.hpp"

namespace thinwire::schema {

template <>
struct FieldsOf<BucketReport> {
  static void visit(auto& bucket, auto&& field) {
    field("bucket", bucket.bucket);
    field("group", bucket.group);
    field("codec", bucket.codec);
    field("elements", bucket.elements);
    field("sent_bytes", bucket.sent_bytes);
    field("ready_s", bucket.ready_s);
    field("encode_s", bucket.encode_s);
    field("exchange_s", bucket.exchange_s);
    field("reduce_s", bucket.reduce_s);
    field("decode_s", bucket.decode_s);
    field("residual_ratio", bucket.residual_ratio);
  }
};

template <>
struct FieldsOf<StepReport> {
  static void visit(auto& report, auto&& field) {
    field("step", report.step);
    field("optimizer_stage", report.optimizer_stage);
    field("sent_bytes", report.sent_bytes);
    field("compression_ratio", report.compression_ratio);
    field("exposed_s", report.exposed_s);
    field("update_s", report.update_s);
    field("grad_norm", report.grad_norm);
    field("clip_factor", report.clip_factor);
    field("skipped", report.skipped);
    field("buckets", report.buckets);
  }
};

std::string to_json_line(const StepReport& report) {
  return object_of(report).dump();
}

StepReport step_report_from_json(const std::string& line) {
  constexpr const char* kPlace = "schema::step_report";
  return struct_of<StepReport>(kPlace, "", parse_json(kPlace, line));
}

}  // namespace thinwire::schema
