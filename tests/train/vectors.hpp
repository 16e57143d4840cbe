// Modules whose gradients a test chooses element by element, and the bits of everything that a step may change.
#pragma once

#include <torch/nn.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "thinwire/base/hash.hpp"
#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/ddp/reducer.hpp"

namespace thinwire::train {

inline torch::Tensor noise(std::uint64_t seed, at::IntArrayRef shape, double scale = 1.0) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(shape, generator) * scale;
}

using Shape = std::vector<std::int64_t>;

// Parameters "p0", "p1", ... of the given shapes.
struct VectorsImpl : torch::nn::Module {
  explicit VectorsImpl(const std::vector<Shape>& shapes, double scale = 0.1) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      list.push_back(register_parameter("p" + std::to_string(i), noise(50 + i, shapes[i], scale)));
    }
  }
  std::vector<torch::Tensor> list;
};
TORCH_MODULE(Vectors);

// Its gradient of parameter i is gradients[i] to the bit; an undefined tensor leaves the parameter out.
inline torch::Tensor loss_with(const Vectors& vectors, const std::vector<torch::Tensor>& gradients) {
  torch::Tensor loss = torch::zeros({});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) loss = loss + (vectors->list[i] * gradients[i]).sum();
  }
  return loss;
}

// Gradients of one rank at one step.
inline std::vector<torch::Tensor> random_gradients(const std::vector<Shape>& shapes, std::int64_t step, int rank,
                                                   double scale = 1.0) {
  std::vector<torch::Tensor> gradients;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    gradients.push_back(
        noise(static_cast<std::uint64_t>(1'000'000 + 10'000 * step + 100 * rank) + i, shapes[i], scale));
  }
  return gradients;
}

// Tensors that an optimizer of ours keeps under `prefix` ("m", "v", "momentum"), by parameter.
inline std::vector<torch::Tensor> kept(const torch::optim::Optimizer& optimizer, const std::string& prefix) {
  torch::serialize::OutputArchive out;
  optimizer.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  std::vector<torch::Tensor> tensors;
  for (torch::Tensor one; in.try_read(prefix + "_" + std::to_string(tensors.size()), one, true);) {
    tensors.push_back(one.clone());
  }
  return tensors;
}

inline std::uint64_t bits_of(const torch::Tensor& tensor) {
  return hash_bytes({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
}

// Hashes by name: parameters, moments, both residuals of this rank.
using StateBits = std::map<std::string, std::uint64_t>;

inline StateBits state_bits(DataParallel& parallel, const torch::optim::Optimizer& optimizer) {
  StateBits bits;
  ExchangeSet& exchanges = parallel.reducer().exchanges();
  const std::vector<Parameter>& parameters = parallel.reducer().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bits["x of " + parameters[i].name] = bits_of(parameters[i].tensor);
    if (const auto& worker = exchanges.gradients()[i].worker) {
      bits["e of " + parameters[i].name] = hash_bytes(std::as_bytes(worker->committed()));
    }
  }
  for (const ServerResidual* one : exchanges.server_residuals()) {
    bits["s of " + parameters[one->piece.parameter].name + " from " + std::to_string(one->piece.offset)] =
        hash_bytes(std::as_bytes(one->residual->committed()));
  }
  for (const char* prefix : {"m", "v", "momentum", "steps"}) {
    const std::vector<torch::Tensor> tensors = kept(optimizer, prefix);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      bits[std::string(prefix) + " of " + parameters[i].name] = bits_of(tensors[i]);
    }
  }
  return bits;
}

// This rank's share of what compression holds back of a parameter; over the ranks the shares add up to mean(e) + s.
inline torch::Tensor unsent(DataParallel& parallel, int parameter) {
  return parallel.reducer().exchanges().unsent(parameter);
}

}  // namespace thinwire::train
