// One optimizer step on the communication thread: buckets in order, clipping, both hops of neighbours interleaved.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "thinwire/comm/world.hpp"
#include "thinwire/schema/step_report.hpp"
#include "thinwire/train/ddp/clip.hpp"
#include "thinwire/train/ddp/exchange_set.hpp"
#include "thinwire/train/ddp/norm_sketch.hpp"
#include "thinwire/watch/timeline.hpp"

namespace thinwire::train {

// What all ranks know after the exchange, bit for bit the same on each.
struct StepOutcome {
  std::uint32_t flags = 0;    // comm::flag
  double norm = 0;            // of the mean gradient; 0 when nothing is clipped
  float dense_factor = 1.0F;  // what dense gradients are multiplied with (others were before they were encoded)
  bool skip() const { return (flags & (comm::flag::kNonFinite | comm::flag::kDropped)) != 0; }
};

struct ClipSettings {
  double max_norm = 0;  // 0: no clipping
  bool predicted = false;
};

// Methods are called on the communication thread, except `open` and `outcome`, which the trainer's thread calls while
// that thread is idle.
class StepPipeline {
 public:
  static constexpr int kMaxInFlight = 3;  // buckets between encode and the end of hop 2; more only fills memory

  StepPipeline(ExchangeSet& exchanges, comm::World& world, watch::Timeline& timeline, ClipSettings clip);

  void open(std::int64_t step, bool measure_residual);
  // Buckets come in order. `flags`: what this rank adds to the messages of this bucket.
  void on_bucket(int bucket, std::uint32_t flags);
  int in_flight() const { return static_cast<int>(in_flight_.size()); }
  // One more wait of the oldest exchange that has one to make.
  void advance();
  // After the last bucket, nothing in flight: what the step came to. `had_batch`: the gradients were this rank's own.
  void conclude(bool had_batch);
  // Forgets what is in flight (the groups are dead).
  void abandon();

  const StepOutcome& outcome() const { return outcome_; }
  const std::vector<schema::BucketReport>& reports() const { return reports_; }
  NormPredictor& predictor() { return predictor_; }
  // The layout has changed: predictions by bucket start again.
  void forget_predictions();

 private:
  struct InFlight {
    int bucket;
    bool reduced;
    double sent_at_s;
    std::int64_t hop2_bytes = 0;
  };
  bool sketched() const { return clip_.max_norm > 0 && !exchanges_.all_dense(); }
  bool held_until_norm() const { return sketched() && !(clip_.predicted && predictor_.ready()); }
  void sketch(int bucket);
  float factor_for(int bucket) const;
  void agree_on_norm();
  void start(int bucket, std::uint32_t flags, float factor);
  bool dense(int bucket) const { return exchanges_.bucket_route(bucket).route == Route::kDense; }
  void reduce(InFlight& entry);
  void finish(const InFlight& entry);
  void record(watch::EventKind kind, int bucket, double begin_s, double end_s, std::int64_t bytes = 0);
  std::int64_t sent_bytes() const;
  void report_bucket(int bucket, const ExchangeReport& done);

  ExchangeSet& exchanges_;
  comm::World& world_;
  watch::Timeline& timeline_;
  ClipSettings clip_;
  NormSketch sketch_;
  NormPredictor predictor_;
  ExchangeStep step_;
  double opened_at_s_ = 0;
  std::vector<std::pair<int, std::uint32_t>> held_;  // buckets and flags that wait for the norm
  std::vector<double> bucket_norms_;                 // this rank's
  double dense_norm2_ = 0;
  std::deque<InFlight> in_flight_;
  StepOutcome outcome_;
  std::vector<schema::BucketReport> reports_;
};

}  // namespace thinwire::train
