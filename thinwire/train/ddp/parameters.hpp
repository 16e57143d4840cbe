// The trainable parameters of a module: each once, classed by how its gradient travels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "thinwire/train/ddp/agreement.hpp"

namespace torch::nn {
class Module;
}

namespace thinwire::train {

// dense: norms, biases, fewer than 1024 elements, and what the user names; embedding: weights of Embedding and
// EmbeddingBag with the heads tied to them, and what the user names; body: everything else.
enum class ParameterKind : int { kDense = 0, kEmbedding = 1, kBody = 2 };
const char* to_string(ParameterKind kind);

struct Parameter {
  std::string name;  // of its first registration, "blocks.0.attention.weight"
  at::Tensor tensor;
  ParameterKind kind = ParameterKind::kBody;      // changes when OneBitAdam wakes a parameter
  ParameterKind declared = ParameterKind::kBody;  // by the rules, from the start
  int optimizer_group = 0;                        // index of the optimizer's parameter group
  std::int64_t numel() const { return tensor.numel(); }
};

struct ParameterRules {
  std::vector<std::string> dense;      // names, or prefixes that end in '.'
  std::vector<std::string> embedding;  // likewise
};

// In registration order, frozen ones (requires_grad false) included: they may thaw. A tensor registered twice (tied)
// appears once. Throws Error kInvalidArgument, naming the parameter: dtype other than float32, not contiguous, sparse,
// a rule that matches nothing, a module without parameters.
std::vector<Parameter> collect_parameters(const torch::nn::Module& module, const ParameterRules& rules);

// What ranks must share, and a checkpoint fits to: name, shape, dtype and kind of each parameter, and the buffers.
std::vector<Fact> model_facts(const std::vector<Parameter>& parameters, const torch::nn::Module& module);

}  // namespace thinwire::train
