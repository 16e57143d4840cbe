#include "thinwire/schema/step_report.hpp"

#include "thinwire/schema/fields.hpp"

namespace thinwire::schema {
namespace {

constexpr const char* kPlace = "schema::step_report";

Json to_json(const BucketReport& bucket) {
  return {{"bucket", bucket.bucket},
          {"group", bucket.group},
          {"codec", bucket.codec},
          {"elements", bucket.elements},
          {"sent_bytes", bucket.sent_bytes},
          {"ready_s", bucket.ready_s},
          {"encode_s", bucket.encode_s},
          {"exchange_s", bucket.exchange_s},
          {"reduce_s", bucket.reduce_s},
          {"decode_s", bucket.decode_s},
          {"residual_ratio", bucket.residual_ratio}};
}

BucketReport bucket_from_json(const std::string& path, const Json& json) {
  Fields fields(kPlace, path, json);
  BucketReport bucket;
  bucket.bucket = fields.small_integer("bucket");
  bucket.group = fields.text("group");
  bucket.codec = fields.text("codec");
  bucket.elements = fields.integer("elements");
  bucket.sent_bytes = fields.integer("sent_bytes");
  bucket.ready_s = fields.number("ready_s");
  bucket.encode_s = fields.number("encode_s");
  bucket.exchange_s = fields.number("exchange_s");
  bucket.reduce_s = fields.number("reduce_s");
  bucket.decode_s = fields.number("decode_s");
  bucket.residual_ratio = fields.number("residual_ratio");
  fields.finish();
  return bucket;
}

}  // namespace

std::string to_json_line(const StepReport& report) {
  Json json = {{"step", report.step},
               {"optimizer_stage", report.optimizer_stage},
               {"sent_bytes", report.sent_bytes},
               {"compression_ratio", report.compression_ratio},
               {"exposed_s", report.exposed_s},
               {"update_s", report.update_s},
               {"grad_norm", report.grad_norm},
               {"clip_factor", report.clip_factor},
               {"skipped", report.skipped},
               {"buckets", Json::array()}};
  for (const BucketReport& bucket : report.buckets) json["buckets"].push_back(to_json(bucket));
  return json.dump();
}

StepReport step_report_from_json(const std::string& line) {
  const Json json = parse_json(kPlace, line);
  Fields fields(kPlace, "", json);
  StepReport report;
  report.step = fields.integer("step");
  report.optimizer_stage = fields.text("optimizer_stage");
  report.sent_bytes = fields.integer("sent_bytes");
  report.compression_ratio = fields.number("compression_ratio");
  report.exposed_s = fields.number("exposed_s");
  report.update_s = fields.number("update_s");
  report.grad_norm = fields.number("grad_norm");
  report.clip_factor = fields.number("clip_factor");
  report.skipped = fields.boolean("skipped");
  for (const Json& bucket : fields.array("buckets"))
    report.buckets.push_back(bucket_from_json("buckets[" + std::to_string(report.buckets.size()) + "]", bucket));
  fields.finish();
  return report;
}

}  // namespace thinwire::schema
