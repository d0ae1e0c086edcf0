// `train.quantize` on every model: each scheme computes nearly what floats do, or is refused before the training.
#include "../support/message_of.h"
#include "experiment_fixture.h"

#include <tenon/train/model.h>

#include <gmock/gmock.h>

#include <cmath>
#include <map>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class QuantizedModels : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000, /*in_words=*/true);
  }
  /// A few steps of a small model, made integers of.
  ExperimentResult run_small(const std::string& model, const std::string& scheme, Words more = {}) {
    Words words{"train.quantize=\"" + scheme + "\"",
                "model.hidden=16",
                "model.layers=2",
                "model.heads=2",
                "model.context=16",
                "train.batch_size=8",
                "train.max_steps=6",
                "train.test_batch_size=16",
                "data.test_limit=32",
                "train.lr=0.01"};
    return run_model(model, std::move(words), more);
  }
  static std::map<std::string, double> figures_of(const ExperimentResult& result) {
    return {result.figures.begin(), result.figures.end()};
  }
  /// 4 bits are 16 values, and none of these models is trained to its end.
  void expect_alike(const std::string& scheme, const ExperimentResult& result) {
    auto figures = figures_of(result);
    const double floats = figures.at("float_test_loss"), integers = figures.at("quantized_test_loss");
    EXPECT_DOUBLE_EQ(floats, result.epochs.back().test_loss);
    EXPECT_NEAR(integers, floats, (scheme == "weight_only_int4" ? 0.15 : 0.05) * floats);
    EXPECT_GT(figures.at("quantized_layers"), 0);
    EXPECT_LT(figures.at("quantized_parameter_bytes"), figures.at("float_parameter_bytes"));
  }
  static void expect_other_bits(const ExperimentResult& result) {
    const auto figures = figures_of(result);
    EXPECT_NE(figures.at("quantized_test_loss"), figures.at("float_test_loss")) << "nothing was made integers of";
  }
};

TEST_F(QuantizedModels, ComputeNearlyWhatFloatsDo) {
  for (const std::string model : {"lenet", "unet", "ddpm", "vit", "bert", "gpt", "llama", "moe"}) {
    for (const std::string scheme : {"static", "dynamic", "weight_only_int8", "weight_only_int4"}) {
      if (model == "unet" && scheme != "static") continue;  // refused, below
      SCOPED_TRACE(testing::Message() << model << ", " << scheme);
      const ExperimentResult result = run_small(model, scheme);
      expect_alike(scheme, result);
      // ddpm's linear layers shift channels, which norms of one channel a group, as in so narrow a model, take away.
      if (model != "ddpm" || scheme == "static") expect_other_bits(result);
    }
  }
}

TEST_F(QuantizedModels, AnOutputLayerOfItsOwnIsMadeIntegersOfAsWell) {
  for (const std::string model : {"lstm-lm", "gpt", "llama", "moe"}) {
    for (const std::string scheme : {"static", "dynamic", "weight_only_int8", "weight_only_int4"}) {
      SCOPED_TRACE(testing::Message() << model << ", " << scheme);
      const ExperimentResult result = run_small(model, scheme, {"model.tied=false"});
      expect_alike(scheme, result);
      expect_other_bits(result);
    }
  }
}

TEST_F(QuantizedModels, WithoutALayerForItAreRefusedBeforeTheTraining) {
  bool trained = false;
  sink.stops = [&trained] { return !(trained = true); };
  for (const std::string scheme : {"static", "dynamic", "weight_only_int8", "weight_only_int4"}) {
    EXPECT_THAT(message_of([&] { run_small("lstm-lm", scheme, {"model.tied=true"}); }),
                HasSubstr("the model has no such layer"));
  }
  EXPECT_THAT(message_of([&] { run_small("unet", "dynamic"); }),
              HasSubstr("'dynamic' makes integers of linear layers, and the model has no such layer"));
  EXPECT_FALSE(trained);
}

TEST_F(QuantizedModels, AnExpertThatNoSymbolWasSentToStaysAsItIs) {
  // One window of 2 symbols reaches at most 4 of 16 experts in each of the 2 blocks.
  const Words few{"model.experts=16",         "model.context=2",           "train.batch_size=1",
                  "train.quantize_batches=1", "model.experts_per_token=2", "model.tied=true"};
  const auto figures = figures_of(run_small("moe", "static", few));
  EXPECT_LT(figures.at("quantized_layers"), 2 * (16 * 3));
  EXPECT_NEAR(figures.at("quantized_test_loss"), figures.at("float_test_loss"), 0.1 * figures.at("float_test_loss"));
}

TEST_F(QuantizedModels, ARunThatWentOnGivesTheSameFigures) {
  const std::string file = (folder / "run").string();
  const ExperimentResult whole = run_small("gpt", "static");
  run_small("gpt", "none", {"train.stop_at=3", "train.save=\"" + file + "\""});
  const ExperimentResult resumed = run_small("gpt", "static", {"train.resume=\"" + file + "\""});
  auto a = figures_of(whole), b = figures_of(resumed);
  for (const char* name : {"float_test_loss", "quantized_test_loss", "quantized_layers", "quantized_parameter_bytes"})
    EXPECT_EQ(a.at(name), b.at(name)) << name;
}

}  // namespace
}  // namespace tenon::test
