#include "thinwire/train/ddp/step_pipeline.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>

#include "thinwire/base/clock.hpp"
#include "thinwire/train/ddp/waiting_scope.hpp"

namespace thinwire::train {
namespace {

double square_sum(std::span<const float> values) {
  double lanes[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane)
      lanes[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
  }
  for (; i < values.size(); ++i) lanes[0] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

StepPipeline::StepPipeline(ExchangeSet& exchanges, comm::World& world, watch::Timeline& timeline, ClipSettings clip)
    : exchanges_(exchanges), world_(world), timeline_(timeline), clip_(clip) {
  forget_predictions();
}

void StepPipeline::forget_predictions() {
  predictor_ = NormPredictor(exchanges_.layout().buckets.size());
}

void StepPipeline::open(std::int64_t step, bool measure_residual) {
  step_ = {.step = step, .measure_residual = measure_residual};
  opened_at_s_ = monotonic_seconds();
  sketch_.clear();
  held_.clear();
  bucket_norms_.assign(exchanges_.layout().buckets.size(), 0.0);
  dense_norm2_ = 0;
  outcome_ = {};
  reports_.assign(exchanges_.layout().buckets.size(), {});
  world_.progress().step = step;
}

void StepPipeline::on_bucket(int bucket, std::uint32_t flags) {
  const double now = monotonic_seconds();
  record(watch::EventKind::kReady, bucket, now, now);
  reports_[bucket].ready_s = now - opened_at_s_;
  if (sketched()) sketch(bucket);
  if (!dense(bucket) && held_until_norm()) {
    held_.emplace_back(bucket, flags);
  } else {
    start(bucket, flags, dense(bucket) ? 1.0F : factor_for(bucket));
  }
  if (bucket + 1 < static_cast<int>(exchanges_.layout().buckets.size())) return;
  if (sketched()) agree_on_norm();
  for (const auto& [waiting, waiting_flags] : held_) {
    while (in_flight() >= kMaxInFlight) advance();
    start(waiting, waiting_flags, outcome_.dense_factor);
  }
}

void StepPipeline::sketch(int bucket) {
  double norm2 = 0;
  for (const auto& chunk : exchanges_.layout().buckets[bucket].chunks) {
    for (const Piece& piece : chunk) {
      const std::span<const float> values = gradient_of(exchanges_.gradients()[piece.parameter], piece);
      sketch_.add(piece.parameter, piece.offset, values);
      norm2 += square_sum(values);
    }
  }
  bucket_norms_[bucket] = std::sqrt(norm2);
}

float StepPipeline::factor_for(int bucket) const {
  if (!sketched()) return 1.0F;
  return clip_factor(predictor_.predict(bucket, bucket_norms_[bucket]), clip_.max_norm);
}

// The norm of the mean gradient, from the sum of all ranks' sketches; alone it is known exactly.
void StepPipeline::agree_on_norm() {
  if (world_.size() == 1) {
    double norm2 = 0;
    for (const double norm : bucket_norms_) norm2 += norm * norm;
    outcome_.norm = std::sqrt(norm2);
  } else {
    const at::Tensor lanes = at::from_blob(sketch_.lanes().data(), {NormSketch::kLanes}, at::kFloat);
    const comm::Handle joined = world_.hop1().all_reduce(lanes, comm::ReduceOp::kSum, {"norm sketch", step_.step});
    // A rank whose backward is slower may wait for the second hop of one of these before it brings its last bucket.
    for (InFlight& entry : in_flight_) {
      if (!entry.reduced) reduce(entry);
    }
    const WaitingScope waiting(world_.progress());
    joined->wait();
    outcome_.norm = sketch_.norm() / world_.size();
  }
  outcome_.dense_factor = clip_factor(outcome_.norm, clip_.max_norm);
}

void StepPipeline::start(int bucket, std::uint32_t flags, float factor) {
  ExchangeStep step = step_;
  step.factor = factor;
  step.flags = flags;
  world_.progress().bucket = bucket;
  world_.progress().hop = 1;
  world_.progress().phase = comm::Phase::kEncoding;
  const double begin = monotonic_seconds();
  const std::int64_t before = sent_bytes();
  exchanges_.exchange(bucket).encode_and_send(step);
  reports_[bucket].sent_bytes += sent_bytes() - before;
  const double end = monotonic_seconds();
  if (!dense(bucket)) record(watch::EventKind::kEncode, bucket, begin, end);
  in_flight_.push_back({bucket, false, end});
}

// The owner's part of a bucket comes before the end of the one in front: its second hop then starts earlier, and the
// order within each hop stays the order of the buckets.
void StepPipeline::advance() {
  const auto next = std::find_if(in_flight_.begin(), in_flight_.end(), [](const InFlight& e) { return !e.reduced; });
  if (next != in_flight_.end()) {
    reduce(*next);
  } else {
    finish(in_flight_.front());
    in_flight_.pop_front();
    // The next bucket is the trainer's to bring: a rank that is slow in its backward must not seem to wait.
    if (in_flight_.empty()) world_.progress().phase = comm::Phase::kComputing;
  }
}

void StepPipeline::reduce(InFlight& entry) {
  world_.progress().bucket = entry.bucket;
  world_.progress().hop = 1;
  world_.progress().phase = comm::Phase::kWaiting;
  const std::int64_t before = sent_bytes();
  BucketExchange& exchange = exchanges_.exchange(entry.bucket);
  exchange.reduce_and_send();
  const double end = monotonic_seconds();
  const double received = end - exchange.report().reduce_s;
  schema::BucketReport& report = reports_[entry.bucket];
  record(dense(entry.bucket) ? watch::EventKind::kDense : watch::EventKind::kExchangeHop1, entry.bucket,
         entry.sent_at_s, received, report.sent_bytes);
  if (!dense(entry.bucket)) record(watch::EventKind::kReduce, entry.bucket, received, end);
  report.exchange_s += received - entry.sent_at_s;
  entry.hop2_bytes = sent_bytes() - before;
  report.sent_bytes += entry.hop2_bytes;
  entry.sent_at_s = end;
  entry.reduced = true;
}

void StepPipeline::finish(const InFlight& entry) {
  world_.progress().bucket = entry.bucket;
  world_.progress().hop = 2;
  world_.progress().phase = comm::Phase::kWaiting;
  BucketExchange& exchange = exchanges_.exchange(entry.bucket);
  outcome_.flags |= exchange.finish();
  const ExchangeReport& done = exchange.report();
  dense_norm2_ += done.sum_norm2;
  if (!dense(entry.bucket)) {
    const double end = monotonic_seconds();
    const double received = end - done.decode_s;
    record(watch::EventKind::kExchangeHop2, entry.bucket, entry.sent_at_s, received, entry.hop2_bytes);
    if (done.decode_s > 0) record(watch::EventKind::kDecode, entry.bucket, received, end);
    reports_[entry.bucket].exchange_s += received - entry.sent_at_s;
  }
  report_bucket(entry.bucket, done);
}

void StepPipeline::report_bucket(int bucket, const ExchangeReport& done) {
  schema::BucketReport& report = reports_[bucket];
  const Bucket& cut = exchanges_.layout().buckets[bucket];
  report.bucket = bucket;
  report.codec = exchanges_.bucket_route(bucket).codec;
  report.elements = cut.elements;
  report.encode_s = done.encode_s;
  report.reduce_s = done.reduce_s;
  report.decode_s = done.decode_s;
  if (done.encoded_norm2 > 0) report.residual_ratio = std::sqrt(done.residual_norm2 / done.encoded_norm2);
}

void StepPipeline::conclude(bool had_batch) {
  if (clip_.max_norm > 0 && !sketched()) {
    outcome_.norm = std::sqrt(dense_norm2_);
    outcome_.dense_factor = clip_factor(outcome_.norm, clip_.max_norm);
  }
  if (sketched() && had_batch && !outcome_.skip()) predictor_.observe(outcome_.norm, bucket_norms_);
  world_.progress().phase = comm::Phase::kComputing;
  world_.progress().hop = 0;
}

void StepPipeline::abandon() {
  in_flight_.clear();
  held_.clear();
}

void StepPipeline::record(watch::EventKind kind, int bucket, double begin_s, double end_s, std::int64_t bytes) {
  timeline_.record(
      {.kind = kind, .step = step_.step, .bucket = bucket, .begin_s = begin_s, .end_s = end_s, .bytes = bytes});
}

std::int64_t StepPipeline::sent_bytes() const {
  return world_.hop1().counters().total() + world_.hop2().counters().total();
}

}  // namespace thinwire::train
