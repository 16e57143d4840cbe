// A model's exchanges without autograd: one rank's gradients in, the mean out.
#pragma once

#include <torch/types.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/ranks.hpp"
#include "tests/train/vectors.hpp"
#include "thinwire/train/ddp/exchange_set.hpp"

namespace thinwire::train {

inline std::vector<Parameter> body_parameters(const std::vector<std::int64_t>& sizes) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    parameters.push_back({.name = "p" + std::to_string(i), .tensor = torch::zeros({sizes[i]})});
  }
  return parameters;
}

class RankExchanges {
 public:
  RankExchanges(const std::vector<std::int64_t>& sizes, comm::World& world, const std::string& codec,
                BucketSizes cut = {})
      : parameters_(body_parameters(sizes)), set_(parameters_, world, cut) {
    set_.cut(set_.layout().order, routes(codec));
  }

  // The exchange of one step; commits. `x` is not changed.
  std::vector<torch::Tensor> exchange(const std::vector<torch::Tensor>& x, std::uint32_t* flags = nullptr) {
    for (std::size_t i = 0; i < x.size(); ++i) set_.gradients()[i].source = x[i].clone();
    std::uint32_t all = 0;
    for (int bucket = 0; bucket < static_cast<int>(set_.layout().buckets.size()); ++bucket) {
      set_.exchange(bucket).encode_and_send({.step = step_});
      set_.exchange(bucket).reduce_and_send();
      all |= set_.exchange(bucket).finish();
    }
    ++step_;
    std::vector<torch::Tensor> y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      set_.commit(static_cast<int>(i));
      y.push_back(set_.gradients()[i].source);
    }
    if (flags != nullptr) *flags = all;
    return y;
  }

  std::vector<ParameterRoute> routes(const std::string& codec) const {
    return std::vector<ParameterRoute>(parameters_.size(), {Route::kFeedback, codec});
  }
  ExchangeSet& set() { return set_; }
  void set_kind(int parameter, ParameterKind kind) { parameters_[parameter].kind = kind; }

  // What this rank owns of a parameter's server residual, zeros elsewhere: the ranks' tensors add up to s.
  torch::Tensor owned_server(int parameter) {
    const torch::Tensor all = torch::zeros_like(parameters_[parameter].tensor);
    for (const ServerResidual* one : set_.server_residuals()) {
      if (one->piece.parameter != parameter) continue;
      const std::span<const float> values = one->residual->committed();
      std::copy(values.begin(), values.end(), all.mutable_data_ptr<float>() + one->piece.offset);
    }
    return all;
  }
  std::uint64_t worker_bits(int parameter) {
    return hash_bytes(std::as_bytes(set_.gradients()[parameter].worker->committed()));
  }

 private:
  std::vector<Parameter> parameters_;
  ExchangeSet set_;
  std::int64_t step_ = 0;
};

// Collects one tensor per rank and step from rank threads.
class Collected {
 public:
  void put(const std::string& what, int rank, const torch::Tensor& value) {
    const std::lock_guard lock(mutex_);
    values_[what][rank] = value.clone();
  }
  const std::map<int, torch::Tensor>& of(const std::string& what) const { return values_.at(what); }
  torch::Tensor sum(const std::string& what) const {
    torch::Tensor total;
    for (const auto& [rank, value] : of(what))
      total = total.defined() ? total + value.to(torch::kDouble) : value.to(torch::kDouble);
    return total;
  }
  torch::Tensor mean(const std::string& what) const { return sum(what) / static_cast<double>(of(what).size()); }
  // The ranks' tensors have the same bits.
  bool same(const std::string& what) const {
    for (const auto& [rank, value] : of(what)) {
      if (bits_of(value) != bits_of(of(what).begin()->second)) return false;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<int, torch::Tensor>> values_;
};

inline double relative_error(const torch::Tensor& got, const torch::Tensor& want) {
  const torch::Tensor reference = want.to(torch::kDouble);
  const double scale = reference.norm().item<double>();
  const double error = (got.to(torch::kDouble) - reference).norm().item<double>();
  return scale > 0 ? error / scale : error;
}

}  // namespace thinwire::train
