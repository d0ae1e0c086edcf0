// What each model computes, held against its layers written out by hand: small ones, whose parameters are drawn.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

class ModelForwards : public ::testing::Test {
 protected:
  void make(const std::string& name, const Settings& settings, const train::DataShape& data, double deviation = 0.3) {
    Options options(training_sections().front().options);
    options.set_text("name", name);
    for (const auto& [key, value] : settings) options.set_text(key, value);
    model = train::make_model({.options = options, .data = data});
    model.module->eval();
    manual_seed(3);
    for (const auto& item : model.module->named_parameters()) {
      Tensor values = item.value().detach().normal_(0, deviation);
      if (item.key().ends_with(".weight") && values.dim() == 1) values.add_(1);  // of a norm
      named[item.key()] = values;
    }
    for (const auto& item : model.module->named_buffers()) named[item.key()] = item.value();
  }
  Tensor of(const std::string& name) const {
    const auto found = named.find(name);
    if (found != named.end()) return found->second;
    ADD_FAILURE() << "no " << name;
    return {};
  }
  bool has(const std::string& name) const { return named.contains(name); }
  Tensor affine(const Tensor& x, const std::string& layer) const {
    return linear(x, of(layer + ".weight"), has(layer + ".bias") ? of(layer + ".bias") : Tensor());
  }
  Tensor convolved(const Tensor& x, const std::string& layer, std::int64_t stride = 1,
                   std::int64_t padding = -1) const {
    const Tensor weight = of(layer + ".weight");
    return conv2d(x, weight, has(layer + ".bias") ? of(layer + ".bias") : Tensor(), stride,
                  padding >= 0 ? padding : weight.size(2) / 2);
  }
  /// Batch norm in a test, of running figures that are 0 and 1.
  Tensor batch_normed(const Tensor& x, const std::string& layer) const {
    const auto over = [&](const Tensor& t) { return t.view({1, -1, 1, 1}); };
    return x / std::sqrt(1 + 1e-5) * over(of(layer + ".weight")) + over(of(layer + ".bias"));
  }
  Tensor layer_normed(const Tensor& x, const std::string& layer, double epsilon) const {
    return layer_norm(x, {x.size(-1)}, of(layer + ".weight"), of(layer + ".bias"), epsilon);
  }
  Tensor root_normed(const Tensor& x, const std::string& layer) const {
    return x / (x.square().mean({-1}, true) + 1e-5).sqrt() * of(layer + ".weight");
  }
  Tensor symbols_of(const Tensor& tokens) const {
    return of("symbols.weight").index_select(0, tokens.flatten()).view({tokens.size(0), tokens.size(1), -1});
  }
  void expect_forward(const Tensor& input, const Tensor& wanted) {
    const Tensor found = model.forward(input);
    ASSERT_EQ(found.sizes().vec(), wanted.sizes().vec());
    const double scale = wanted.abs().max().item<double>();
    EXPECT_TRUE(found.allclose(wanted, 1e-4, 1e-5 * scale))
        << (found - wanted).abs().max().item<double>() << " of " << scale;
    EXPECT_GT((wanted - wanted.mean()).abs().max().item<double>(), 0) << "all alike";
  }

  const NoGradGuard no_grad;
  train::Model model;
  std::map<std::string, Tensor> named;
};

Tensor seven_symbols(std::int64_t windows, std::int64_t length) {
  return (arange(windows * length, TensorOptions(kInt64)) * 5).remainder(7).view({windows, length});
}

TEST_F(ModelForwards, OfAPerceptronAreLayersAndReluWithAHead) {
  make("mlp", {{"hidden", "6"}, {"layers", "3"}}, {.channels = 2, .height = 3, .width = 4, .classes = 5});
  const Tensor pictures = randn({2, 2, 3, 4});
  Tensor x = pictures.flatten(1);
  for (const char* layer : {"layer0.0", "layer1.0", "layer2.0"}) x = relu(affine(x, layer));
  expect_forward(pictures, affine(x, "head"));
}

TEST_F(ModelForwards, OfLenetAreTwoConvolutionsWithPoolingAndTwoLayers) {
  make("lenet", {}, {.channels = 2, .height = 16, .width = 20, .classes = 5}, 0.1);
  const Tensor pictures = randn({2, 2, 16, 20});
  const Tensor first = max_pool2d(relu(convolved(pictures, "stage0.0")), 2);
  const Tensor second = max_pool2d(relu(convolved(first, "stage1.0", 1, 0)), 2);
  EXPECT_EQ(second.sizes().vec(), (std::vector<std::int64_t>{2, 24, 2, 3}));
  expect_forward(pictures, affine(relu(affine(second.flatten(1), "stage2.1")), "head"));
}

TEST_F(ModelForwards, OfResidualNetworksAreBlocksWithAWayAround) {
  for (const auto& [name, firsts] :
       std::map<std::string, std::vector<int>>{{"resnet8", {1, 2}}, {"resnet50", {3, 7, 13}}}) {
    named.clear();
    make(name, {}, {.channels = 2, .height = 8, .width = 6, .classes = 4}, 0.05);
    const Tensor pictures = randn({1, 2, 8, 6});
    Tensor x = relu(batch_normed(convolved(pictures, "stem"), "norm"));
    int block = 0;
    for (; has("block" + std::to_string(block) + ".convs.0.weight"); ++block) {
      const std::string path = "block" + std::to_string(block) + ".";
      const bool is_wide = has(path + "convs.2.weight");
      const std::int64_t step = std::find(firsts.begin(), firsts.end(), block) != firsts.end() ? 2 : 1;
      Tensor y = x;
      for (int i = 0; i < (is_wide ? 3 : 2); ++i) {
        const std::string number = std::to_string(i);
        // A wide block halves the picture in its convolution of 3 by 3.
        y = batch_normed(convolved(y, path + "convs." + number, i == (is_wide ? 1 : 0) ? step : 1),
                         path + "norms." + number);
        if (i < (is_wide ? 2 : 1)) y = relu(y);
      }
      const bool is_changed = y.sizes() != x.sizes();
      EXPECT_EQ(has(path + "shortcut.weight"), is_changed) << path;
      x = relu(y + (is_changed ? batch_normed(convolved(x, path + "shortcut", step), path + "shortcut_norm") : x));
    }
    EXPECT_EQ(block, name == "resnet8" ? 3 : 16);
    expect_forward(pictures, affine(x.mean({2, 3}), "head"));
  }
}

TEST_F(ModelForwards, OfAResidualNetworkForImagenetBeginWithALargeConvolutionAndPooling) {
  make("resnet18", {{"stem", "imagenet"}}, {.channels = 1, .height = 32, .width = 32, .classes = 3}, 0.05);
  EXPECT_EQ(of("stem.weight").sizes().vec(), (std::vector<std::int64_t>{64, 1, 7, 7}));
  const Tensor pictures = randn({1, 1, 32, 32});
  const Tensor first = max_pool2d(relu(batch_normed(convolved(pictures, "stem", 2), "norm")), 3, 2, 1);
  EXPECT_EQ(first.sizes().vec(), (std::vector<std::int64_t>{1, 64, 8, 8}));
  EXPECT_TRUE(model.stages.layers->ptr(0)->as<train::LayerImpl>()->forward(pictures).allclose(first, 1e-4, 1e-5));
}

TEST_F(ModelForwards, OfUnetSeeTheFeaturesOfTheirSizeOnTheWayUp) {
  make("unet", {{"hidden", "3"}, {"layers", "2"}}, {.channels = 2, .height = 8, .width = 12, .classes = 4});
  const auto level = [&](const Tensor& x, const std::string& name) {
    const Tensor y = relu(batch_normed(convolved(x, name + ".conv1"), name + ".norm1"));
    return relu(batch_normed(convolved(y, name + ".conv2"), name + ".norm2"));
  };
  const auto wider = [&](const Tensor& x, const std::string& name) {
    return conv_transpose2d(x, of(name + ".weight"), of(name + ".bias"), 2);
  };
  const Tensor pictures = randn({2, 2, 8, 12});
  const Tensor top = level(pictures, "down0"), middle = level(max_pool2d(top, 2), "down1");
  Tensor x = level(max_pool2d(middle, 2), "down2");
  EXPECT_EQ(x.sizes().vec(), (std::vector<std::int64_t>{2, 12, 2, 3}));
  x = level(cat({middle, wider(x, "widen1")}, 1), "up1");
  x = level(cat({top, wider(x, "widen0")}, 1), "up0");
  expect_forward(pictures, convolved(x, "head"));
}

TEST_F(ModelForwards, OfARecurrentModelAreItsStatesFromZeros) {
  for (const char* tied : {"true", "false"}) {
    named.clear();
    make("lstm-lm", {{"hidden", "4"}, {"layers", "2"}, {"tied", tied}}, {.vocabulary = 7, .context = 5});
    const Tensor tokens = seven_symbols(2, 5);
    Tensor x = symbols_of(tokens);
    for (const std::string layer : {"layer0.", "layer1."}) {
      Tensor state = zeros({2, 4}), cell = zeros({2, 4});
      std::vector<Tensor> states;
      for (std::int64_t i = 0; i < 5; ++i) {
        const Tensor gates = linear(x.select(1, i), of(layer + "weight_ih_l0"), of(layer + "bias_ih_l0")) +
                             linear(state, of(layer + "weight_hh_l0"), of(layer + "bias_hh_l0"));
        const auto four = gates.chunk(4, -1);
        cell = four[1].sigmoid() * cell + four[0].sigmoid() * four[2].tanh();
        state = four[3].sigmoid() * cell.tanh();
        states.push_back(state);
      }
      x = stack(states, 1);
    }
    const bool is_tied = std::string(tied) == "true";
    const Tensor logits = is_tied ? linear(x, of("symbols.weight"), of("bias")) : affine(x, "head");
    expect_forward(tokens, logits);
    const train::HeadInput head = model.before_head(tokens);
    EXPECT_TRUE(linear(head.hidden, head.weight, head.bias).allclose(logits, 1e-4, 1e-5));
  }
}

TEST_F(ModelForwards, OfBertNormaliseBehindWhatTheyAdd) {
  for (const char* activation : {"gelu", "relu"}) {
    named.clear();
    make("bert", {{"hidden", "8"}, {"heads", "2"}, {"layers", "2"}, {"activation", activation}, {"positions", "9"}},
         {.vocabulary = 7, .context = 5});
    const Tensor tokens = seven_symbols(2, 5);
    const bool has_relu = std::string(activation) == "relu";
    Tensor x = symbols_of(tokens) + of("positions").narrow(0, 0, 5) + of("sentences")[0];
    x = layer_normed(x, "norm", 1e-12);
    for (const std::string block : {"block0.", "block1."}) {
      const auto parts = affine(x, block + "qkv").chunk(3, -1);
      std::vector<Tensor> heads;
      for (std::int64_t head = 0; head < 2; ++head) {
        const auto own = [&](const Tensor& t) { return t.narrow(-1, 4 * head, 4); };
        const Tensor weights = (own(parts[0]).matmul(own(parts[1]).transpose(1, 2)) / 2).softmax(-1);
        heads.push_back(weights.matmul(own(parts[2])));
      }
      x = layer_normed(x + affine(cat(heads, -1), block + "out"), block + "norm1", 1e-12);
      const Tensor wide = affine(x, block + "widen");
      x = layer_normed(x + affine(has_relu ? relu(wide) : gelu(wide), block + "narrow"), block + "norm2", 1e-12);
    }
    x = layer_normed(gelu(affine(x, "transform")), "transform_norm", 1e-12);
    expect_forward(tokens, linear(x, of("symbols.weight"), of("bias")));
  }
}

// Heads that share keys and values see the same ones.
TEST_F(ModelForwards, OfLlamaRotateQueriesAndKeysAndGateTheirPerceptrons) {
  for (const char* tied : {"true", "false"}) {
    named.clear();
    make("llama",
         {{"hidden", "16"}, {"heads", "4"}, {"kv_heads", "2"}, {"layers", "2"}, {"intermediate", "9"}, {"tied", tied}},
         {.vocabulary = 7, .context = 6});
    const Tensor tokens = seven_symbols(2, 5);
    const auto rotated = [&](const Tensor& t) {  // of one head
      const auto halves = t.chunk(2, -1);
      const Tensor cosine = of("rotary.cosine").narrow(0, 0, 5), sine = of("rotary.sine").narrow(0, 0, 5);
      return cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine}, -1);
    };
    const Tensor later = ones({5, 5}).triu(1).to(kBool);
    Tensor x = symbols_of(tokens);
    for (const std::string block : {"block0.", "block1."}) {
      const Tensor y = root_normed(x, block + "norm1");
      const Tensor queries = affine(y, block + "attention.query"), keys = affine(y, block + "attention.key"),
                   values = affine(y, block + "attention.value");
      std::vector<Tensor> heads;
      for (std::int64_t head = 0; head < 4; ++head) {
        const Tensor asked = rotated(queries.narrow(-1, 4 * head, 4)),
                     key = rotated(keys.narrow(-1, 4 * (head / 2), 4));
        const Tensor scores = (asked.matmul(key.transpose(1, 2)) / 2).masked_fill(later, -1e30);
        heads.push_back(scores.softmax(-1).matmul(values.narrow(-1, 4 * (head / 2), 4)));
      }
      x = x + affine(cat(heads, -1), block + "attention.out");
      const Tensor z = root_normed(x, block + "norm2");
      x = x + affine(silu(affine(z, block + "perceptron.gate")) * affine(z, block + "perceptron.up"),
                     block + "perceptron.down");
    }
    x = root_normed(x, "norm");
    expect_forward(tokens, linear(x, of(std::string(tied) == "true" ? "symbols.weight" : "head.weight")));
  }
}

/// A mixture whose attention adds nothing.
class MixtureForwards : public ModelForwards {
 protected:
  void make_mixture(const char* chosen, const char* balance) {
    named.clear();
    make("moe",
         {{"hidden", "8"},
          {"heads", "2"},
          {"layers", "2"},
          {"intermediate", "5"},
          {"experts", "4"},
          {"experts_per_token", chosen},
          {"balance", balance}},
         {.vocabulary = 7, .context = 6}, 0.5);
    for (const char* block : {"block0", "block1"}) of(std::string(block) + ".attention.out.weight").zero_();
  }
  /// The logits, symbol by symbol; how uneven each block used its experts goes to `imbalance`.
  Tensor by_symbols(const Tensor& tokens, std::int64_t chosen) {
    Tensor x = symbols_of(tokens).flatten(0, 1);
    imbalance = 0;
    for (const std::string block : {"block0.", "block1."}) {
      const Tensor z = root_normed(x, block + "norm2"), chances = affine(z, block + "experts.router").softmax(-1);
      std::vector<double> share(4);
      std::vector<Tensor> rows;
      for (std::int64_t row = 0; row < z.size(0); ++row) {
        const auto [most, who] = chances[row].topk(chosen, -1);
        Tensor sum = x[row];
        for (std::int64_t i = 0; i < chosen; ++i) {
          const auto expert = who[i].item<std::int64_t>();
          share.at(static_cast<std::size_t>(expert)) += 1.0 / static_cast<double>(chosen * z.size(0));
          const std::string path = block + "experts.expert" + std::to_string(expert);
          const Tensor own = z.narrow(0, row, 1);
          const Tensor value = affine(silu(affine(own, path + ".gate")) * affine(own, path + ".up"), path + ".down");
          sum = sum + value[0] * (most[i] / most.sum());
        }
        rows.push_back(sum);
      }
      x = stack(rows, 0);
      for (std::int64_t expert = 0; expert < 4; ++expert)
        imbalance += 4 * share[static_cast<std::size_t>(expert)] * chances.select(1, expert).mean().item<double>();
    }
    return linear(root_normed(x, "norm"), of("symbols.weight")).view({tokens.size(0), tokens.size(1), 7});
  }
  double imbalance = 0;
};

TEST_F(MixtureForwards, SendEachSymbolToItsExpertsByTheirShare) {
  for (const std::int64_t chosen : {1, 2, 4}) {
    make_mixture(std::to_string(chosen).c_str(), "0.5");
    const Tensor tokens = seven_symbols(3, 6);
    expect_forward(tokens, by_symbols(tokens, chosen));
  }
}

TEST_F(MixtureForwards, AddAnUnevenUseOfTheExpertsToTheLossOfTraining) {
  for (const double balance : {0.5, 0.0}) {
    make_mixture("2", balance > 0 ? "0.5" : "0");
    const Tensor tokens = seven_symbols(3, 6), targets = tokens.roll(1, 1);
    const Tensor wanted = by_symbols(tokens, 2);
    const double entropy = cross_entropy_loss(wanted.flatten(0, 1), targets.flatten()).item<double>();
    EXPECT_NEAR(model.loss(model.forward(tokens), targets).item<double>(), entropy, 1e-4) << "of a test alone that";
    model.module->train();
    EXPECT_NEAR(model.loss(model.forward(tokens), targets).item<double>(), entropy + balance * imbalance / 2, 1e-4)
        << "the mean of both blocks";
    EXPECT_NE(imbalance, 0);
  }
}

}  // namespace
}  // namespace tenon::test
