// How the parameters of a module are classed.
#include "thinwire/train/ddp/parameters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "thinwire/base/error.hpp"

namespace thinwire::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    table = register_module("table", torch::nn::Embedding(64, 32));
    bag = register_module("bag", torch::nn::EmbeddingBag(64, 32));
    few = register_module("few", torch::nn::Embedding(4, 32));
    hidden = register_module("hidden", torch::nn::Linear(32, 2000));
    small = register_module("small", torch::nn::Linear(31, 33));
    limit = register_module("limit", torch::nn::Linear(32, 32));
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<std::int64_t>{64, 64}));
    batch = register_module("batch", torch::nn::BatchNorm1d(2000));
    head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(32, 64).bias(false)));
  }
  void tie() { register_parameter("tied", table->weight); }  // used as a head by functional::linear
  torch::nn::Embedding table{nullptr}, few{nullptr};
  torch::nn::EmbeddingBag bag{nullptr};
  torch::nn::Linear hidden{nullptr}, small{nullptr}, limit{nullptr}, head{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::BatchNorm1d batch{nullptr};
};
TORCH_MODULE(Net);

std::map<std::string, ParameterKind> kinds_of(const torch::nn::Module& module, const ParameterRules& rules = {}) {
  std::map<std::string, ParameterKind> kinds;
  for (const Parameter& parameter : collect_parameters(module, rules)) kinds[parameter.name] = parameter.kind;
  return kinds;
}

TEST(Parameters, AreClassedByWhatTheyAre) {
  Net net;
  auto kinds = kinds_of(*net);
  EXPECT_EQ(kinds.at("table.weight"), ParameterKind::kEmbedding);
  EXPECT_EQ(kinds.at("bag.weight"), ParameterKind::kEmbedding);
  EXPECT_EQ(kinds.at("few.weight"), ParameterKind::kDense) << "128 elements";
  EXPECT_EQ(kinds.at("hidden.weight"), ParameterKind::kBody);
  EXPECT_EQ(kinds.at("hidden.bias"), ParameterKind::kDense) << "a bias, although it has 2000 elements";
  EXPECT_EQ(kinds.at("small.weight"), ParameterKind::kDense) << "1023 elements";
  EXPECT_EQ(kinds.at("limit.weight"), ParameterKind::kBody) << "1024 elements";
  EXPECT_EQ(kinds.at("norm.weight"), ParameterKind::kDense) << "a norm of two dimensions and 4096 elements";
  EXPECT_EQ(kinds.at("batch.weight"), ParameterKind::kDense);
  EXPECT_EQ(kinds.at("head.weight"), ParameterKind::kBody) << "not tied";
}

TEST(Parameters, ATiedHeadIsAnEmbeddingAndComesOnce) {
  Net net;
  net->tie();
  const auto parameters = collect_parameters(*net, {});
  EXPECT_EQ(std::count_if(parameters.begin(), parameters.end(),
                          [&](const Parameter& p) { return p.tensor.is_same(net->table->weight); }),
            1);
  EXPECT_EQ(parameters[0].name, "tied") << "the first registration: a module's own come before its children's";
  EXPECT_EQ(parameters[0].kind, ParameterKind::kEmbedding);
  EXPECT_EQ(parameters.size() + 1, net->parameters().size()) << "torch lists it twice";
}

TEST(Parameters, TheUserMayNameDenseAndEmbeddingOnes) {
  Net net;
  auto kinds = kinds_of(*net, {.dense = {"hidden.weight", "bag."}, .embedding = {"head."}});
  EXPECT_EQ(kinds.at("hidden.weight"), ParameterKind::kDense);
  EXPECT_EQ(kinds.at("bag.weight"), ParameterKind::kDense);
  EXPECT_EQ(kinds.at("head.weight"), ParameterKind::kEmbedding);
  EXPECT_EQ(kinds.at("limit.weight"), ParameterKind::kBody);
}

std::string error_of(const torch::nn::Module& module, const ParameterRules& rules = {}) {
  try {
    collect_parameters(module, rules);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Parameters, ARuleThatNamesNothingIsAnError) {
  Net net;
  EXPECT_THAT(error_of(*net, {.dense = {"hiden.weight"}, .embedding = {}}), HasSubstr("hiden.weight"));
  EXPECT_THAT(error_of(*net, {.dense = {}, .embedding = {"tabel."}}), HasSubstr("tabel."));
  EXPECT_THAT(error_of(*net, {.dense = {"hidden"}, .embedding = {}}), HasSubstr("hidden")) << "a prefix ends in '.'";
}

TEST(Parameters, AWrongDtypeIsNamed) {
  Net net;
  net->hidden->to(torch::kDouble);
  EXPECT_THAT(error_of(*net), testing::AllOf(HasSubstr("hidden.weight"), HasSubstr("Double")));
}

TEST(Parameters, AParameterThatIsNotContiguousIsNamed) {
  torch::nn::Module module;
  module.register_parameter("turned", torch::zeros({40, 50}).t());
  EXPECT_THAT(error_of(module), testing::AllOf(HasSubstr("turned"), HasSubstr("contiguous")));
}

TEST(Parameters, AModuleWithoutParametersIsAnError) {
  const torch::nn::Module module;
  EXPECT_THAT(error_of(module), HasSubstr("without parameters"));
}

TEST(Parameters, FrozenOnesStayInTheList) {
  Net net;
  const std::size_t all = collect_parameters(*net, {}).size();
  net->hidden->weight.set_requires_grad(false);
  EXPECT_EQ(collect_parameters(*net, {}).size(), all) << "it may thaw";
}

}  // namespace
}  // namespace thinwire::train
