#include "thinwire/train/ddp/parameters.hpp"

#include <ATen/MemoryOverlap.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "thinwire/base/error.hpp"

namespace thinwire::train {
namespace {

constexpr std::int64_t kSmallestBody = 1024;
constexpr const char* kPlace = "train::collect_parameters";

bool matches(const std::string& name, const std::string& rule) {
  if (!rule.empty() && rule.back() == '.') return name.rfind(rule, 0) == 0;
  return name == rule;
}

// Says for every parameter whether a rule of the list names it, and refuses rules that name nothing.
std::vector<bool> named_by(const std::vector<std::string>& rules, const std::vector<Parameter>& parameters) {
  std::vector<bool> named(parameters.size(), false);
  for (const std::string& rule : rules) {
    bool found = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!matches(parameters[i].name, rule)) continue;
      named[i] = found = true;
    }
    if (!found) {
      fail(ErrorCode::kInvalidArgument,
           {kPlace, "name of a parameter in the settings", rule,
            "a parameter of the module, or a prefix that ends in '.'", "printing module.named_parameters()"});
    }
  }
  return named;
}

void check_supported(const std::string& name, const at::Tensor& tensor, const at::Device& device) {
  const auto refuse = [&](const std::string& got, const std::string& want) {
    fail(ErrorCode::kInvalidArgument, {kPlace, "parameter " + name, got, want, ""});
  };
  if (tensor.layout() != at::kStrided) refuse("a sparse tensor", "a dense one");
  if (tensor.scalar_type() != at::kFloat) {
    refuse(std::string("dtype ") + c10::toString(tensor.scalar_type()), "Float (train in float32, or autocast)");
  }
  if (tensor.device() != device) {
    refuse("device " + tensor.device().str(), device.str() + ", where the first parameter is");
  }
  if (!tensor.is_contiguous()) refuse("a tensor that is not contiguous", "contiguous memory: parameter.contiguous()");
}

// What the module that owns a parameter says about it.
struct Owners {
  std::unordered_set<const void*> embeddings;
  std::unordered_set<const void*> norms;
};

// `apply` on a constant module, unlike `modules`, works for a root that lies on the stack.
Owners find_owners(const torch::nn::Module& root) {
  Owners owners;
  const std::function<void(const torch::nn::Module&)> look = [&](const torch::nn::Module& module) {
    const bool embedding = dynamic_cast<const torch::nn::EmbeddingImpl*>(&module) != nullptr ||
                           dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&module) != nullptr;
    const bool norm = module.name().find("Norm") != std::string::npos;
    for (const at::Tensor& tensor : module.parameters(/*recurse=*/false)) {
      if (embedding) owners.embeddings.insert(tensor.unsafeGetTensorImpl());
      if (norm) owners.norms.insert(tensor.unsafeGetTensorImpl());
    }
  };
  root.apply(look);
  return owners;
}

ParameterKind kind_of(const at::Tensor& tensor, const Owners& owners) {
  const void* identity = tensor.unsafeGetTensorImpl();
  if (owners.embeddings.count(identity) != 0 && tensor.numel() >= kSmallestBody) return ParameterKind::kEmbedding;
  if (tensor.dim() <= 1 || tensor.numel() < kSmallestBody || owners.norms.count(identity) != 0) {
    return ParameterKind::kDense;
  }
  return ParameterKind::kBody;
}

}  // namespace

const char* to_string(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kDense:
      return "dense";
    case ParameterKind::kEmbedding:
      return "embedding";
    case ParameterKind::kBody:
      return "body";
  }
  return "unknown";
}

std::vector<Parameter> collect_parameters(const torch::nn::Module& module, const ParameterRules& rules) {
  const Owners owners = find_owners(module);
  std::vector<Parameter> parameters;
  std::unordered_set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& tensor = item.value();
    if (!tensor.defined() || tensor.numel() == 0 || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    check_supported(item.key(), tensor, parameters.empty() ? tensor.device() : parameters.front().tensor.device());
    parameters.push_back({.name = item.key(), .tensor = tensor, .kind = kind_of(tensor, owners)});
  }
  if (parameters.empty()) {
    fail(ErrorCode::kInvalidArgument,
         {kPlace, "a module without parameters", "", "", "register_parameter or register_module"});
  }
  const std::vector<bool> dense = named_by(rules.dense, parameters);
  const std::vector<bool> embedding = named_by(rules.embedding, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (embedding[i]) parameters[i].kind = ParameterKind::kEmbedding;
    if (dense[i]) parameters[i].kind = ParameterKind::kDense;
    parameters[i].declared = parameters[i].kind;
  }
  return parameters;
}

std::vector<Fact> model_facts(const std::vector<Parameter>& parameters, const torch::nn::Module& module) {
  std::vector<Fact> facts;
  for (const Parameter& parameter : parameters) {
    facts.push_back({"parameter " + parameter.name, c10::str(parameter.tensor.sizes(), " ", parameter.tensor.dtype(),
                                                             " ", to_string(parameter.declared))});
  }
  for (const auto& buffer : module.named_buffers()) {
    if (at::has_internal_overlap(buffer.value()) == at::MemOverlap::Yes) {
      fail(ErrorCode::kInvalidArgument,
           {kPlace, "buffer " + buffer.key(), "an expanded tensor, whose elements share memory",
            "memory of its own, since rank 0's values are copied into it", "buffer.clone()"});
    }
    facts.push_back({"buffer " + buffer.key(), c10::str(buffer.value().sizes(), " ", buffer.value().dtype())});
  }
  return facts;
}

}  // namespace thinwire::train
