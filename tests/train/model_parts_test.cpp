// Parts of the language models, each made by itself: first weights, rotations, dropout, attention and its closed form.
#include "../support/message_of.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t kSymbols = 7, kContext = 16;

train::Model made(const std::string& name, const Settings& settings, std::int64_t vocabulary = kSymbols) {
  Options options(training_sections().front().options);
  options.set_text("name", name);
  options.set_text("hidden", "8");
  options.set_text("heads", "2");
  for (const auto& [key, value] : settings) options.set_text(key, value);
  return train::make_model({.options = options, .data = {.vocabulary = vocabulary, .context = kContext}});
}

/// The parameter or buffer whose name ends so.
Tensor part(const train::Model& model, const std::string& name) {
  for (const auto& item : model.module->named_parameters())
    if (item.key().ends_with(name)) return item.value();
  for (const auto& item : model.module->named_buffers())
    if (item.key().ends_with(name)) return item.value();
  ADD_FAILURE() << "no " << name;
  return {};
}

Tensor tokens() { return arange(kContext, TensorOptions(kInt64)).remainder(kSymbols).view({1, kContext}); }

TEST(ModelParts, WhatReadsTextTakesNoPicturesAndTheOtherWayRound) {
  EXPECT_EQ(message_of([] { made("gpt", {}, 0); }), "the model 'gpt' reads text");
  EXPECT_EQ(message_of([] { made("mlp", {}); }), "the model 'mlp' reads pictures");
}

TEST(ModelParts, PerceptronsOfLlamaAreAsWideAsAskedAndFourTimesTheirInputElse) {
  EXPECT_EQ(part(made("llama", {}), "block0.perceptron.gate.weight").sizes().vec(), (std::vector<std::int64_t>{32, 8}));
  EXPECT_EQ(part(made("llama", {{"intermediate", "24"}}), "block0.perceptron.gate.weight").sizes().vec(),
            (std::vector<std::int64_t>{24, 8}));
}

// As published: GELU exactly, and norms with an epsilon of 1e-6; gpt has its approximation, and 1e-5.
TEST(ModelParts, PerceptronsOfVitComputeGeluExactlyAndItsNormsHaveTheirEpsilon) {
  const NoGradGuard no_grad;
  for (const auto& [name, approximate, epsilon] : {std::tuple{"vit", "none", 1e-6}, std::tuple{"gpt", "tanh", 1e-5}}) {
    const bool is_vit = std::string(name) == "vit";
    const train::Model model = made(name, {{"layers", "1"}}, is_vit ? 0 : kSymbols);
    // Large values, for which the two differ, and small ones, where an epsilon shows.
    part(model, "block0.widen.weight").mul_(300);
    part(model, "block0.narrow.weight").mul_(30);
    part(model, "block0.out.weight").zero_();
    const auto norm = [&](const Tensor& x, const std::string& which) {
      return layer_norm(x, {8}, part(model, which + ".weight"), part(model, which + ".bias"), epsilon);
    };
    const auto linear_of = [&](const Tensor& x, const std::string& which) {
      return linear(x, part(model, which + ".weight"), part(model, which + ".bias"));
    };
    Tensor x, found;
    if (is_vit) {
      part(model, "embedding.weight").mul_(1e-3);
      part(model, "positions").mul_(0.1);
      const Tensor pictures = ones({1, 1, 28, 28});
      const Tensor patches = conv2d(pictures, part(model, "embedding.weight"), part(model, "embedding.bias"), {4, 4});
      x = cat({part(model, "class_token"), patches.flatten(2).transpose(1, 2)}, 1) + part(model, "positions");
      found = model.forward(pictures);
    } else {
      x = part(model, "symbols.weight").index_select(0, tokens().view({-1})).unsqueeze(0) +
          part(model, "positions").narrow(0, 0, kContext);
      found = model.before_head(tokens()).hidden;
    }
    const Tensor y =
        x + linear_of(gelu(linear_of(norm(x, "block0.norm2"), "block0.widen"), approximate), "block0.narrow");
    const Tensor last = norm(y, "body.norm");
    const Tensor expected = is_vit ? linear_of(last.select(1, 0), "head") : last;
    EXPECT_TRUE(found.allclose(expected, 1e-5, 1e-6)) << name;
  }
}

TEST(ModelParts, AnglesOfLlamaGrowWithThePositionAndShrinkFromPairToPair) {
  const train::Model model = made("llama", {{"hidden", "16"}});  // four pairs a head
  const Tensor cosine = part(model, ".cosine"), sine = part(model, ".sine");
  ASSERT_EQ(cosine.sizes().vec(), (std::vector<std::int64_t>{kContext, 4}));
  for (std::int64_t position = 0; position < kContext; ++position) {
    for (std::int64_t pair = 0; pair < 4; ++pair) {
      const double angle = static_cast<double>(position) * std::pow(500000.0, -static_cast<double>(pair) / 4);
      EXPECT_NEAR(cosine[position][pair].item<double>(), std::cos(angle), 1e-6);
      EXPECT_NEAR(sine[position][pair].item<double>(), std::sin(angle), 1e-6);
    }
  }
}

// Of a head as wide as Llama 3's: pair 0 turns once in 6 positions, pair 63 once in 2.6 million.
TEST(ModelParts, SlowRotationsAreSlowerByTheFactorAndFastOnesAreKept) {
  const Settings wide{{"hidden", "256"}, {"layers", "1"}};
  Settings stretched = wide;
  stretched.emplace_back("rotary_factor", "8");
  const Tensor kept = part(made("llama", wide), ".sine")[1], sine = part(made("llama", stretched), ".sine")[1];
  for (const std::int64_t fast : {0, 8, 20}) EXPECT_EQ(sine[fast].item<float>(), kept[fast].item<float>());
  for (const std::int64_t slow : {40, 63})
    EXPECT_NEAR(sine[slow].item<double>() * 8, kept[slow].item<double>(), 1e-9) << slow;
  // Between one turn and four in 8,192 positions: pair 31 turns 2.26 times.
  const double turn = std::pow(500000.0, -31.0 / 64), share = (8192 * turn / (2 * std::numbers::pi) - 1) / 3;
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
  EXPECT_NEAR(sine[31].item<double>(), std::sin((1 - share) * turn / 8 + share * turn), 1e-8);
}

// With values of zero attention adds nothing, so that its own dropout shows nowhere.
TEST(ModelParts, WhatABlockAddsIsDroppedInTrainingAlone) {
  NoGradGuard no_grad;
  for (const auto& [name, values] :
       Settings{{"llama", "block0.attention.value.weight"}, {"gpt", "block0.qkv.weight"}}) {
    const train::Model model = made(name, {{"dropout", "0.5"}, {"layers", "1"}});
    part(model, values).zero_();
    const auto twice_alike = [&] { return model.forward(tokens()).equal(model.forward(tokens())); };
    EXPECT_FALSE(twice_alike()) << name;
    model.module->eval();
    EXPECT_TRUE(twice_alike()) << name;
  }
}

TEST(ModelParts, FirstWeightsOfBertAreOfItsPaperAndBiasesNone) {
  const train::Model model = made("bert", {{"hidden", "64"}});
  int biases = 0;
  for (const auto& item : model.module->named_parameters()) {
    if (item.key().ends_with("bias")) {
      EXPECT_EQ(item.value().abs().max().item<double>(), 0) << item.key();
      ++biases;
    } else if (item.value().dim() == 2 && item.value().numel() > 1000) {
      EXPECT_NEAR(item.value().std().item<double>(), 0.02, 0.002) << item.key();
    }
  }
  EXPECT_GT(biases, 0);
}

/// Of one block of bert whose attention adds a number per head to a stream of zeros, and whose perceptron adds nothing:
/// what its head reads, a row for each symbol.
Tensor read_from_constant_attention(train::Model& model) {
  for (const char* name : {"symbols.weight", "positions", "sentences", "block0.qkv.weight", "block0.narrow.weight"})
    part(model, name).zero_();
  part(model, "block0.qkv.bias").narrow(0, 16, 8).copy_(tensor({1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0}));
  part(model, "block0.out.weight").copy_(eye(8));
  part(model, "transform.weight").copy_(eye(8) * 1e-3);  // so little that GELU keeps the order of numbers
  return model.before_head(tokens().expand({64, kContext})).hidden.view({64 * kContext, 8});
}

TEST(ModelParts, BertDropsWhatABlockAddsAndWeightsOfAttentionInTrainingAlone) {
  NoGradGuard no_grad;
  train::Model model = made("bert", {{"dropout", "0.5"}, {"layers", "1"}});
  const Tensor trained = read_from_constant_attention(model);
  EXPECT_FALSE(trained.select(1, 0).equal(trained.select(1, 1))) << "elements of one head, of which some are dropped";
  // Were nothing dropped but these, rows of which the same elements are would be alike.
  std::map<std::string, Tensor> rows;
  bool are_alike = true;
  for (std::int64_t i = 0; i < trained.size(0); ++i) {
    std::string dropped;
    for (std::int64_t j = 0; j < 8; ++j) dropped += trained[i][j].equal(trained[i].min()) ? '1' : '0';
    const auto [row, is_first] = rows.emplace(dropped, trained[i]);
    are_alike = are_alike && row->second.allclose(trained[i], 1e-3, 1e-3);
  }
  EXPECT_FALSE(are_alike);
  model.module->eval();
  const Tensor tested = read_from_constant_attention(model);
  EXPECT_TRUE(tested.select(1, 0).allclose(tested.select(1, 1)));
  EXPECT_TRUE(tested.allclose(tested[0].expand_as(tested)));
}

TEST(ModelParts, WhatIsAddedToTheStreamIsDrawnSmallerTheMoreBlocksAdd) {
  const auto deviation = [](const train::Model& model, const std::string& name) {
    return part(model, name).std().item<double>();
  };
  for (const char* layers : {"1", "8"}) {
    const Settings wide{{"hidden", "64"}, {"layers", layers}};
    const double small = 0.02 / std::sqrt(2 * std::stod(layers));
    const train::Model gpt = made("gpt", wide), llama = made("llama", wide);
    EXPECT_NEAR(deviation(gpt, "block0.qkv.weight"), 0.02, 0.002);
    EXPECT_NEAR(deviation(gpt, "block0.out.weight"), small, 0.1 * small);
    EXPECT_NEAR(deviation(gpt, "block0.narrow.weight"), small, 0.1 * small);
    EXPECT_NEAR(deviation(llama, "block0.perceptron.gate.weight"), 0.02, 0.002);
    EXPECT_NEAR(deviation(llama, "block0.attention.out.weight"), small, 0.1 * small);
    EXPECT_NEAR(deviation(llama, "block0.perceptron.down.weight"), small, 0.1 * small);
  }
}

// A constant in all keys moves every score of a query alike, one in the queries does not.
TEST(ModelParts, AttentionAsksTheKeysByTheQueries) {
  NoGradGuard no_grad;
  const train::Model model = made("gpt", {{"layers", "1"}});
  part(model, "block0.qkv.weight").normal_(0, 1);
  part(model, "block0.out.weight").normal_(0, 1);
  const Tensor bias = part(model, "block0.qkv.bias");  // of queries, keys and values
  const Tensor usual = model.forward(tokens());
  bias.narrow(0, 8, 8).fill_(1);
  EXPECT_TRUE(model.forward(tokens()).allclose(usual, 1e-4, 1e-5));
  bias.zero_();
  bias.narrow(0, 0, 8).fill_(1);
  EXPECT_FALSE(model.forward(tokens()).allclose(usual, 1e-4, 1e-5));
}

// The backward of the perceptron computes GELU again.
TEST(ModelParts, SlopesOfThePerceptronAreThoseOfItsValues) {
  const train::Model model = made("gpt", {{"layers", "1"}});
  const auto loss = [&] { return model.forward(tokens()).square().mean(); };
  const std::vector<std::string> names = {"block0.widen.weight", "block0.widen.bias", "block0.narrow.weight",
                                          "block0.narrow.bias"};
  {
    NoGradGuard no_grad;
    for (const std::string& name : names) part(model, name).normal_(0, 1);
  }
  loss().backward();
  NoGradGuard no_grad;
  for (const std::string& name : names) {
    Tensor values = part(model, name).flatten();  // a view
    for (const std::int64_t i : {0, 5}) {
      const double slope = part(model, name).grad().flatten()[i].item<double>(), step = 1e-2;
      values[i].add_(step);
      const double above = loss().item<double>();
      values[i].sub_(2 * step);
      const double below = loss().item<double>();
      values[i].add_(step);
      EXPECT_NEAR(slope, (above - below) / (2 * step), 0.02 * std::fabs(slope) + 1e-5) << name << " " << i;
    }
  }
}

TEST(ModelParts, KeptActivationsAreThoseOfTheClosedForm) {
  const double unit = 8 * kContext, sums = 2 * kContext, statistics = 4 * kContext;
  const auto form = [](const Settings& more) { return made("gpt", more).activations; };
  EXPECT_EQ(form({}).block, 12 * unit + sums + statistics);
  EXPECT_EQ(form({}).passing, 5 * unit) << "GELU's values, and the output";
  EXPECT_EQ(form({{"activation", "relu"}}).block, 12 * unit + sums + statistics);
  EXPECT_EQ(form({{"dropout", "0.5"}}).block, 14 * unit + sums + statistics);
  EXPECT_EQ(form({}).embedding, 0);
  EXPECT_EQ(form({{"dropout", "0.5"}}).embedding, unit);
  EXPECT_EQ(form({}).head, 2 * unit + 2 * kContext + kContext * kSymbols);
  EXPECT_EQ(form({}).head_passing, kContext * kSymbols) << "the logits, beside their logarithms of probabilities";
  EXPECT_EQ(form({}).block_input, unit);
  EXPECT_EQ(form({{"layers", "5"}}).blocks, 5);
}

}  // namespace
}  // namespace tenon::test
