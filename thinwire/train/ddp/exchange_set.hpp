// All exchanges of a model at one moment: layout, routes, gradient memory and residuals, and how they change together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thinwire/comm/world.hpp"
#include "thinwire/train/ddp/exchange.hpp"
#include "thinwire/train/ddp/layout.hpp"
#include "thinwire/train/ddp/parameters.hpp"

namespace thinwire::train {

enum class Route { kDense, kFeedback, kMomentum };

// How one parameter travels. Parameters of one kind and optimizer group always share a route.
struct ParameterRoute {
  Route route = Route::kDense;
  std::string codec = "fp32";
  bool operator==(const ParameterRoute&) const = default;
};

struct BucketSizes {
  std::int64_t bucket_bytes = 4 << 20;
  std::int64_t first_bucket_bytes = 1 << 20;
};

// Changes happen between steps, on every rank alike. Those marked (collective) must run on the communication thread.
class ExchangeSet {
 public:
  ExchangeSet(const std::vector<Parameter>& parameters, comm::World& world, BucketSizes sizes);

  const Layout& layout() const { return layout_; }
  std::vector<GradientState>& gradients() { return gradients_; }
  const ParameterRoute& route(int parameter) const { return routes_[parameter]; }
  const ParameterRoute& bucket_route(int bucket) const { return routes_[any_parameter(bucket)]; }
  bool all_dense() const;

  BucketExchange& exchange(int bucket) { return *exchanges_[bucket]; }
  // Where this parameter's gradient must lie (dense route); an undefined tensor on the other routes.
  const at::Tensor& slot(int parameter) const { return slots_[parameter]; }

  // The pieces of a parameter that travelled as momentum, with the bytes all ranks agreed on.
  struct EncodedPiece {
    Piece piece;
    std::span<const std::byte> bytes;
    const codec::Codec* codec;
  };
  std::vector<EncodedPiece> encoded(int parameter) const;

  // (collective) Cuts buckets anew and moves server residuals to their new owners with one all-to-all. Worker residuals
  // stay: they belong to parameters. The ranks compare the hash of the result: Error kMismatch.
  void cut(const std::vector<int>& order, std::vector<ParameterRoute> routes);
  // Keeps cuts and residuals; residuals of parameters that become dense are dropped.
  void set_routes(std::vector<ParameterRoute> routes);
  const std::vector<ParameterRoute>& routes() const { return routes_; }

  // Makes the pending residuals of a parameter the committed ones, at worker and owner.
  void commit(int parameter);
  void rescale(int parameter, float factor);
  void clear_residual(int parameter);
  // This rank's share of what compression holds back of a parameter: over the ranks they add up to mean_i(e_i) + s.
  at::Tensor unsent(int parameter) const;
  std::vector<ServerResidual*> server_residuals();

 private:
  int any_parameter(int bucket) const;
  void build();
  void build_slots();
  void build_exchange(int bucket);
  std::vector<ServerResidual> server_of(int bucket, std::vector<ServerResidual>& old);
  void move_server_residuals(const Layout& before);
  void check_same_layout();

  const std::vector<Parameter>& parameters_;
  comm::World& world_;
  BucketSizes sizes_;
  std::vector<int> keys_;  // by parameter, as of the last cut
  Layout layout_;
  std::vector<ParameterRoute> routes_;
  std::vector<GradientState> gradients_;
  std::vector<std::vector<ServerResidual>> server_;  // by bucket; empty for dense buckets
  std::vector<at::Tensor> arenas_;                   // by bucket: the key's flat gradients (dense route)
  std::vector<at::Tensor> slots_;                    // by parameter
  std::vector<std::unique_ptr<BucketExchange>> exchanges_;
};

}  // namespace thinwire::train
