// Averages gradients over the ranks while backward runs. Optimizers take the result with `outcome` and end the step
// with `commit`; everything before that changes no committed state (docs/algorithms.md, "Transactions").
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/comm/world.hpp"
#include "thinwire/schema/step_report.hpp"
#include "thinwire/train/ddp/agreement.hpp"
#include "thinwire/train/ddp/comm_thread.hpp"
#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/ddp/exchange_set.hpp"
#include "thinwire/train/ddp/gradient_hooks.hpp"
#include "thinwire/train/ddp/step_pipeline.hpp"
#include "thinwire/train/ddp/stream_order.hpp"
#include "thinwire/watch/timeline.hpp"

namespace thinwire::train {

// All methods on the trainer's thread. Ranks must call those marked (collective) together, between steps.
class Reducer {
 public:
  Reducer(std::vector<Parameter> parameters, std::vector<at::Tensor> buffers, comm::World& world,
          const DataParallelSettings& settings);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  comm::World& world() { return world_; }
  const DataParallelSettings& settings() const { return settings_; }
  ExchangeSet& exchanges() { return exchanges_; }
  StepPipeline& pipeline() { return pipeline_; }
  watch::Timeline& timeline() { return timeline_; }

  // (collective) Tells which optimizer group each parameter belongs to; buckets never mix them. `settings`: what else
  // about the optimizer must be the same on every rank.
  void set_optimizer_groups(const std::vector<int>& groups, const std::vector<Fact>& settings);
  // (collective) How parameters travel from the next step on. The first committed step of a run is dense whatever this
  // says; after it buckets are cut anew in rank 0's arrival order.
  void set_routes(const std::vector<ParameterRoute>& routes);
  // (collective) Moves parameters to another kind, with buckets cut anew.
  void change_kinds(const std::vector<int>& parameters, ParameterKind kind, const std::vector<ParameterRoute>& routes);
  // Called when a step opens, before anything of it is encoded; may rescale or flush residuals.
  void set_before_step(std::function<void()> callback) { before_step_ = std::move(callback); }
  // (collective) Sends everything that compression still holds of these parameters: mean_i(e_i) + s, and clears it.
  // One float32 tensor per parameter.
  std::vector<at::Tensor> flush_residuals(const std::vector<int>& parameters);

  // What the momentum route encodes; set by the optimizer before the next backward.
  void set_momentum(int parameter, const MomentumView& view) { exchanges_.gradients()[parameter].momentum = view; }
  // The optimizer is going: parameters of the momentum route travel dense, until somebody sets routes.
  void withdraw_momentum();

  enum class State { kIdle, kBackward, kExchanged };
  State state() const { return state_; }

  // The step that waits to be taken, or nothing when there was no backward since the last one, or its gradients were
  // cleared. A step that backward left open (an exception) is dropped here, on every rank. Once per call of step():
  // calls without a step are counted and compared between ranks.
  const StepOutcome* outcome();
  // A rank anywhere has a gradient for this parameter in this step.
  bool used(int parameter) const { return used_[parameter] != 0; }
  bool woke(int parameter) const { return woke_[parameter] != 0; }
  // Mean gradient after the exchange (dense and feedback routes).
  const at::Tensor& gradient(int parameter) const { return parameters_[parameter].tensor.grad(); }
  // What the optimizer still has to multiply that gradient with.
  float gradient_factor(int parameter) const;

  // (collective) Ends the step: pending residuals become committed, unless it is skipped. `update_s`: for the report.
  void commit(double update_s);
  std::int64_t committed_steps() const { return committed_steps_; }

  void set_sync(bool sync);
  bool sync() const { return sync_; }
  std::int64_t join(const std::function<void()>& step);

  // Ends a step that backward or the trainer left open, so that nothing reads the optimizer's memory any more. Given up
  // together with the other ranks, or, while an exception unwinds or after a failure, by shutting the groups down so
  // that nobody waits. For destructors, the reducer's and the optimizer's.
  void give_up_step() noexcept;

  // (collective) Throws Error kMismatch, on every rank alike, naming the first fact that differs. The reducer stays
  // usable.
  void require_same(const std::string& place, const std::vector<Fact>& facts, const std::string& hint = kSameProgram);
  // (collective) Runs `work` on the communication thread, behind the open step. What it throws makes further exchanges
  // impossible.
  void run_collective(const std::function<void(comm::World&)>& work);
  void broadcast_buffers();

  // (collective) Compares the bits of these tensors on all ranks. Optimizers add their state to the parameters'.
  void check_parity(const std::vector<std::pair<std::string, at::Tensor>>& tensors);
  bool parity_due() const;

  std::int64_t sent_bytes() const;  // payload, by this rank, since the world was made

  const schema::StepReport& last_report() const { return report_; }
  void set_stage(const std::string& stage) { stage_ = stage; }
  void set_on_report(std::function<void(const schema::StepReport&)> callback) { on_report_ = std::move(callback); }

  // For checkpoints: what decides how the next step is cut and counted. Residuals are in `exchanges`.
  struct Progress {
    std::int64_t committed_steps = 0;
    std::int64_t opened_steps = 0;
    bool ordered = false;    // buckets follow rank 0's arrival order
    std::vector<int> order;  // of parameters, as they are cut into buckets
  };
  Progress progress() const;
  void restore(const Progress& progress);  // (collective) after the optimizer has set its routes

 private:
  void on_gradient(int parameter, const at::Tensor& incoming);
  void on_backward_end();
  void require_own_gradient(int parameter);
  void note_exchanged_gradients();
  void open_step();
  void count_remaining();
  void take_gradient(int parameter, const at::Tensor& incoming);
  void take_missing_gradients();
  void mark_arrived(int parameter);
  void hand_over(int bucket, std::uint32_t flags);
  void hand_over_ready();
  void hand_over_rest(std::uint32_t flags);
  void finish_exchange(std::uint32_t flags);
  std::uint32_t turn_flag() const;
  void require_same_turn() const;
  bool given_up() const;
  void require_hooks() const;
  void agree_on_masks();
  void restore_undefined_gradients();
  void drop_open_step();
  void adopt_arrival_order();
  void require_alive() const;
  void require_only_user() const;
  void end_step(State state);
  void guard(const std::function<void()>& work);
  void make_report(double update_s);

  comm::World& world_;
  DataParallelSettings settings_;
  std::vector<Parameter> parameters_;
  std::vector<at::Tensor> buffers_;
  watch::Timeline timeline_;
  ExchangeSet exchanges_;
  StepPipeline pipeline_;
  std::unique_ptr<StreamOrder> streams_;
  CommThread thread_;
  std::unique_ptr<GradientHooks> hooks_;

  State state_ = State::kIdle;
  bool sync_ = true;
  bool untaken_ = false;                     // the open step began before the one before it was taken
  bool accumulated_ = false;                 // a backward under no_sync() since the last exchange
  bool ordered_ = false;                     // buckets follow rank 0's arrival order
  std::weak_ptr<const void> open_backward_;  // expires with the backward that opened the step
  std::string broken_;                       // why no further exchange is possible
  std::int64_t opened_steps_ = 0;
  std::int64_t committed_steps_ = 0;
  std::int64_t idle_steps_ = 0;  // calls of step() that found nothing to take
  std::vector<ParameterRoute> wanted_;
  std::vector<int> arrival_;                  // parameters in the order of this step's hooks
  std::vector<char> arrived_;                 // by parameter
  std::vector<char> undefined_;               // by parameter: .grad was undefined before we pointed it somewhere
  std::vector<std::vector<int>> buckets_of_;  // by parameter
  std::vector<int> remaining_;                // by bucket: parameters that have not arrived
  int next_bucket_ = 0;
  std::vector<std::uint8_t> used_, woke_;  // by parameter, agreed between ranks
  // .grad as the last exchange left it; the slots keep the tensors alive, so that no other takes their address.
  struct ExchangedGradient {
    const void* tensor = nullptr;
    std::int64_t version = 0;
  };
  std::vector<ExchangedGradient> exchanged_;  // by parameter
  double opened_at_s_ = 0;
  double exposed_s_ = 0;
  std::int64_t sent_before_ = 0;
  std::string stage_ = "dense";
  std::function<void()> before_step_;
  schema::StepReport report_;
  std::function<void(const schema::StepReport&)> on_report_;
};

}  // namespace thinwire::train
