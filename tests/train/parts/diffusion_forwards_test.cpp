// What the networks of diffusion models compute, written out by hand: noise that a test draws alike every time,
// residual blocks that know the time, attention, and as many levels up as down.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

class DiffusionForwards : public ::testing::Test {
 protected:
  void make(const std::string& name, const std::map<std::string, std::string>& settings) {
    Options options(training_sections().front().options);
    options.set_text("name", name);
    for (const auto& [key, value] : settings) options.set_text(key, value);
    is_latent = name != "ddpm";
    model = train::make_model({.options = options, .data = {.channels = 2, .height = 4, .width = 4}});
    model.module->eval();
    manual_seed(4);
    named.clear();
    for (const auto& item : model.module->named_parameters()) {
      Tensor values = item.value().detach().normal_(0, 0.1);
      if (item.key().ends_with(".weight") && values.dim() == 1) values.add_(1);  // of a norm
      named[item.key()] = values;
    }
    for (const auto& item : model.module->named_buffers()) named[item.key()] = item.value();
  }
  bool has(const std::string& name) const { return named.contains(name); }
  Tensor of(const std::string& name) const { return named.at(name); }
  Tensor affine(const Tensor& x, const std::string& layer) const {
    return linear(x, of(layer + ".weight"), has(layer + ".bias") ? of(layer + ".bias") : Tensor());
  }
  Tensor convolved(const Tensor& x, const std::string& layer, std::int64_t stride = 1) const {
    const Tensor weight = of(layer + ".weight");
    return conv2d(x, weight, of(layer + ".bias"), stride, weight.size(2) / 2);
  }
  /// In 32 groups, or as many as divide the channels.
  Tensor normed(const Tensor& x, const std::string& layer, double epsilon) const {
    const std::int64_t groups = std::gcd<std::int64_t>(32, x.size(1));
    const Tensor in_groups = x.reshape({x.size(0), groups, -1});
    const Tensor centred = in_groups - in_groups.mean({2}, true);
    const Tensor scaled = (centred / (centred.square().mean({2}, true) + epsilon).sqrt()).view(x.sizes());
    return scaled * of(layer + ".weight").view({1, -1, 1, 1}) + of(layer + ".bias").view({1, -1, 1, 1});
  }
  Tensor residual(const Tensor& x, const Tensor& time, const std::string& path) const {
    const double epsilon = is_latent ? 1e-5 : 1e-6;
    const Tensor first = convolved(silu(normed(x, path + "norm1", epsilon)), path + "conv1");
    const Tensor y = first + affine(time, path + "of_time").unsqueeze(-1).unsqueeze(-1);
    return convolved(silu(normed(y, path + "norm2", epsilon)), path + "conv2") +
           (has(path + "shortcut.weight") ? convolved(x, path + "shortcut") : x);
  }
  /// softmax(q k / sqrt(depth)) v of rows (N, rows, width), in heads.
  Tensor attended(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t heads) const {
    const std::int64_t depth = q.size(2) / heads;
    std::vector<Tensor> all;
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto own = [&](const Tensor& t) { return t.narrow(2, head * depth, depth); };
      const Tensor weights =
          (own(q).matmul(own(k).transpose(1, 2)) / std::sqrt(static_cast<double>(depth))).softmax(-1);
      all.push_back(weights.matmul(own(v)));
    }
    return cat(all, 2);
  }
  Tensor attention(const Tensor& x, const std::string& path) const {
    const auto rows = [](const Tensor& t) { return t.flatten(2).transpose(1, 2); };
    const auto picture = [&](const Tensor& t) { return t.transpose(1, 2).reshape(x.sizes()); };
    const Tensor y = normed(x, path + "norm", 1e-6);
    if (!is_latent)
      return x + convolved(picture(attended(rows(convolved(y, path + "query")), rows(convolved(y, path + "key")),
                                            rows(convolved(y, path + "value")), 1)),
                           path + "out");
    const auto of_rows = [&](const Tensor& t, const std::string& norm) {
      return layer_norm(t, {t.size(2)}, of(path + norm + ".weight"), of(path + norm + ".bias"), 1e-5);
    };
    const auto seen = [&](const Tensor& t, const Tensor& what, const std::string& part) {
      return affine(attended(affine(t, path + part + ".query"), affine(what, path + part + ".key"),
                             affine(what, path + part + ".value"), 2),
                    path + part + ".out");
    };
    Tensor z = rows(convolved(y, path + "in"));
    const Tensor self = of_rows(z, "norm1");
    z = z + seen(self, self, "to_pixels");
    z = z + seen(of_rows(z, "norm2"), of("prompt").expand({x.size(0), 77, 6}), "to_text");
    const auto halves = affine(of_rows(z, "norm3"), path + "gated").chunk(2, -1);
    z = z + affine(halves[0] * gelu(halves[1]), path + "narrow");
    return x + convolved(picture(z), path + "out");
  }
  Tensor staged(const Tensor& x, const Tensor& time, const std::string& stage, bool attends) const {
    EXPECT_EQ(has(stage + ".attention.norm.weight"), attends) << stage;
    const Tensor y = residual(x, time, stage + ".residual.");
    return attends ? attention(y, stage + ".attention.") : y;
  }
  /// Of two levels with one block each; attention at the first, the second, or neither.
  Tensor network(const Tensor& noisy, const Tensor& times, bool first, bool second) const {
    const Tensor angles = times.to(kFloat32).unsqueeze(-1) * of("frequencies");
    const Tensor turns = is_latent ? cat({angles.cos(), angles.sin()}, -1) : cat({angles.sin(), angles.cos()}, -1);
    const Tensor time = silu(affine(silu(affine(turns, "time1")), "time2"));
    const Tensor begin = convolved(noisy, "first");
    const Tensor down0 = staged(begin, time, "down0_0", first), half = convolved(down0, "halve0", 2);
    const Tensor down1 = staged(half, time, "down1_0", second);
    Tensor x = staged(staged(down1, time, "middle1", true), time, "middle2", false);
    x = staged(cat({x, down1}, 1), time, "up1_0", second);
    x = staged(cat({x, half}, 1), time, "up1_1", second);
    const Tensor twice =
        x.unsqueeze(3).unsqueeze(5).expand({x.size(0), x.size(1), 2, 2, 2, 2}).reshape({x.size(0), x.size(1), 4, 4});
    x = convolved(twice, "widen1");
    x = staged(cat({x, down0}, 1), time, "up0_0", first);
    x = staged(cat({x, begin}, 1), time, "up0_1", first);
    return convolved(silu(normed(x, "last_norm", is_latent ? 1e-5 : 1e-6)), "last");
  }
  /// A test draws times and noise from seed 1.
  void expect_forward(bool first, bool second) {
    const Tensor pictures = randn({3, 2, 4, 4});
    const Tensor found = model.forward(pictures);
    manual_seed(1);
    const Tensor times = randint(1000, {3}, TensorOptions(kInt64)), noise = randn_like(pictures);
    const auto at = [&](const char* name) { return of(name).index_select(0, times).view({-1, 1, 1, 1}); };
    const Tensor wanted = network(pictures * at("signal_at") + noise * at("noise_at"), times, first, second);
    const double scale = wanted.abs().max().item<double>(), off = (found - wanted).abs().max().item<double>();
    EXPECT_TRUE(found.allclose(wanted, 1e-3, 1e-4 * scale)) << off << " of " << scale;
    EXPECT_NEAR(model.loss(found, {}).item<double>(), (found - noise).square().mean().item<double>(), 1e-6);
  }

  const NoGradGuard no_grad;
  train::Model model;
  std::map<std::string, Tensor> named;
  bool is_latent = false;
};

TEST_F(DiffusionForwards, OfDdpmAttendWhereThePictureHasThatSide) {
  for (const auto& [sides, first, second] : {std::tuple{"4", true, false}, std::tuple{"2", false, true},
                                             std::tuple{"2,4", true, true}, std::tuple{"16", false, false}}) {
    make("ddpm", {{"hidden", "12"}, {"layers", "1"}, {"multipliers", "1,2"}, {"attention_sides", sides}});
    expect_forward(first, second);
  }
}

TEST_F(DiffusionForwards, OfLatentDiffusionReadATextAtAllLevelsButTheLowest) {
  make("latent-diffusion",
       {{"hidden", "8"}, {"layers", "1"}, {"multipliers", "1,2"}, {"heads", "2"}, {"text_width", "6"}});
  EXPECT_EQ(of("prompt").sizes().vec(), (std::vector<std::int64_t>{1, 77, 6}));
  expect_forward(true, false);
}

TEST_F(DiffusionForwards, OfATestAreTheSameEachTimeAndLeaveTheNumbersOfTraining) {
  make("ddpm", {{"hidden", "4"}, {"layers", "1"}, {"multipliers", "1,1"}});
  const Tensor pictures = randn({2, 2, 4, 4});
  manual_seed(9);
  const Tensor next = randn({3});
  manual_seed(9);
  const Tensor once = model.forward(pictures);
  EXPECT_TRUE(randn({3}).equal(next)) << "as if there had been no test";
  EXPECT_TRUE(model.forward(pictures).equal(once));
  model.module->train();
  EXPECT_FALSE(model.forward(pictures).equal(once));
  EXPECT_FALSE(model.forward(pictures).equal(model.forward(pictures))) << "training draws anew";
}

// As published: ddpm says at first that there is no noise.
TEST_F(DiffusionForwards, BeginWithALastLayerOfZerosOrNot) {
  for (const char* name : {"ddpm", "latent-diffusion"}) {
    Options options(training_sections().front().options);
    options.set_text("name", name);
    options.set_text("hidden", "8");
    options.set_text("multipliers", "1,2");
    const train::Model fresh =
        train::make_model({.options = options, .data = {.channels = 1, .height = 4, .width = 4}});
    for (const auto& item : fresh.module->named_parameters())
      if (item.key() == "last.weight" || item.key() == "last.bias") {
        EXPECT_EQ(item.value().abs().max().item<double>() == 0, std::string(name) == "ddpm") << item.key();
      }
  }
}

}  // namespace
}  // namespace tenon::test
