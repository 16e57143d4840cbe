// What the C++ program of `thinwire bench step` can time: each owns a model, an optimizer and a way to average
// gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "thinwire/comm/world.hpp"

namespace thinwire::bench {

class Contender {
 public:
  virtual ~Contender() = default;
  // Forward, backward, update. Returns the loss.
  virtual at::Tensor step(const at::Tensor& batch) = 0;
  // "warm_up", "one_bit", "dense".
  virtual std::string stage() const = 0;
};

// Names: dense bf16 int4 one_bit, over `world`, every rank together; compute:adam (torch::optim::Adam) and
// compute:adamw (thinwire::AdamW in a world of one), each rank alone. Adam everywhere: no weight decay. Throws Error
// kInvalidArgument.
std::unique_ptr<Contender> make_contender(const std::string& name, comm::World& world);

}  // namespace thinwire::bench
