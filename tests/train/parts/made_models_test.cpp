// Models that cannot be made of their settings or for their data say why, with the numbers.
#include "../../support/message_of.h"

#include <tenon/ops/ops.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// "made", or why not.
std::string outcome(const std::string& name, const Settings& settings, train::DataShape data) {
  Options options(training_sections().front().options);
  options.set_text("name", name);
  options.set_text("hidden", "8");
  options.set_text("layers", "1");
  for (const auto& [key, value] : settings) options.set_text(key, value);
  if (train::reads_text(train::task_of(name))) {
    data.vocabulary = 7;
    if (data.context == 0) data.context = 8;
  }
  try {
    train::make_model({.options = options, .data = data});
  } catch (const Error& error) {
    return error.what();
  }
  return "made";
}

TEST(MadeModels, HaveHeadsThatDivideTheirWidth) {
  for (const char* name : {"gpt", "bert"})
    EXPECT_EQ(outcome(name, {{"heads", "3"}}, {}), "model.hidden = 8 is not divisible by model.heads = 3") << name;
  EXPECT_EQ(outcome("vit", {{"heads", "3"}}, {}), "model.hidden = 8 is not divisible by model.heads = 3");
  for (const char* name : {"llama", "moe"}) {
    EXPECT_EQ(outcome(name, {{"heads", "8"}}, {}),
              std::string(name) +
                  ": model.hidden = 8 is not a multiple of twice model.heads = 8: a head's values are "
                  "rotated in pairs");
    EXPECT_EQ(outcome(name, {{"heads", "4"}, {"kv_heads", "3"}}, {}),
              "model.heads = 4 is not divisible by model.kv_heads = 3");
    EXPECT_EQ(outcome(name, {{"heads", "4"}, {"kv_heads", "2"}}, {}), "made");
    EXPECT_EQ(outcome(name, {{"heads", "2"}}, {}), "made") << "and as many for keys";
  }
  EXPECT_EQ(outcome("latent-diffusion", {{"heads", "3"}, {"multipliers", "3,1"}}, {}),
            "model.heads = 3 do not divide the 8 channels of a level");
  EXPECT_EQ(outcome("latent-diffusion", {{"heads", "8"}, {"multipliers", "1,2"}}, {}), "made");
}

TEST(MadeModels, ChooseNoMoreExpertsThanThereAre) {
  const auto of = [](const char* chosen) {
    return outcome("moe", {{"heads", "2"}, {"experts", "3"}, {"experts_per_token", chosen}}, {});
  };
  EXPECT_EQ(of("4"), "model.experts_per_token = 4 of model.experts = 3");
  EXPECT_EQ(of("3"), "made");
}

TEST(MadeModels, HaveAPositionForEachSymbolOfAWindow) {
  for (const std::string name : {"gpt", "gpt2", "bert"}) {
    EXPECT_EQ(outcome(name, {{"positions", "7"}}, {}),
              name + ": 8 symbols at once, but only 7 positions: make model.context smaller");
    EXPECT_EQ(outcome(name, {{"positions", "8"}}, {}), "made");
  }
}

TEST(MadeModels, OfPicturesFitTheirSides) {
  EXPECT_EQ(outcome("lenet", {}, {.height = 11, .width = 12}), "lenet needs pictures of at least 12 by 12 pixels");
  EXPECT_EQ(outcome("lenet", {}, {.height = 12, .width = 11}), "lenet needs pictures of at least 12 by 12 pixels");
  EXPECT_EQ(outcome("lenet", {}, {.height = 12, .width = 12}), "made");
  EXPECT_EQ(outcome("vit", {{"patch", "5"}}, {.height = 10, .width = 12}),
            "model.patch = 5 does not divide pictures of 10 by 12");
  EXPECT_EQ(outcome("vit", {{"patch", "5"}}, {.height = 12, .width = 10}),
            "model.patch = 5 does not divide pictures of 12 by 10");
  EXPECT_EQ(outcome("vit", {{"patch", "5"}}, {.height = 10, .width = 15}), "made");
  EXPECT_EQ(outcome("unet", {{"layers", "3"}}, {.height = 16, .width = 12}),
            "unet: pictures of 16 by 12 cannot be halved 3 times; make model.layers smaller or set model.image_size to "
            "a multiple of 8");
  EXPECT_NE(outcome("unet", {{"layers", "3"}}, {.height = 12, .width = 16}), "made");
  EXPECT_EQ(outcome("unet", {{"layers", "3"}}, {.height = 16, .width = 8}), "made");
}

TEST(MadeModels, OfDiffusionHalveTheirPicturesFromLevelToLevel) {
  for (const std::string name : {"ddpm", "latent-diffusion"}) {
    EXPECT_EQ(outcome(name, {{"multipliers", "1,1,1"}}, {.height = 4, .width = 6}),
              name +
                  ": pictures of 4 by 6 cannot be halved 2 times; make model.multipliers shorter or set "
                  "model.image_size to a multiple of 4");
    EXPECT_NE(outcome(name, {{"multipliers", "1,1,1"}}, {.height = 6, .width = 4}), "made");
    EXPECT_EQ(outcome(name, {{"multipliers", "1,1,1"}}, {.height = 4, .width = 8}), "made");
    EXPECT_EQ(outcome(name, {{"multipliers", "1"}}, {.height = 3, .width = 5}), "made");
    EXPECT_EQ(outcome(name, {{"multipliers", ""}}, {.height = 4, .width = 4}),
              "model.multipliers is empty: a " + name + " has at least one level");
  }
  EXPECT_EQ(outcome("ddpm", {{"hidden", "7"}, {"multipliers", "1"}}, {.height = 4, .width = 4}),
            "ddpm: model.hidden = 7 is odd: times have sines and cosines");
}

TEST(MadeModels, ReadListsOfPositiveNumbers) {
  for (const char* wrong : {"1,x", "0", "1,-2", "1.5", "2x", "65537"})
    EXPECT_EQ(outcome("ddpm", {{"multipliers", wrong}}, {.height = 4, .width = 4}),
              "model.multipliers = \"" + std::string(wrong) + "\" is not a list of whole numbers such as 1,2,2");
  EXPECT_EQ(outcome("ddpm", {{"multipliers", "1"}, {"attention_sides", "65536"}}, {.height = 4, .width = 4}), "made");
  EXPECT_EQ(outcome("ddpm", {{"multipliers", "1"}, {"attention_sides", ""}}, {.height = 4, .width = 4}), "made")
      << "at no side";
}

TEST(MadeModels, OfOtherNamesAreRefusedWithThoseThatThereAre) {
  EXPECT_EQ(message_of([] { train::task_of("mpl"); }),
            "no model 'mpl'; there are mlp, lenet, resnet8, vit, resnet18, resnet50, unet, ddpm, latent-diffusion, "
            "lstm-lm, bert, gpt, gpt2, llama, moe");
  EXPECT_TRUE(train::has_closed_form("gpt"));
  EXPECT_FALSE(train::has_closed_form("llama"));
}

TEST(MadeModels, HaveACacheOfTheirHeadsOfKeys) {
  Options options(training_sections().front().options);
  for (const auto& [key, value] : Settings{{"name", "llama"}, {"hidden", "24"}, {"heads", "6"}, {"kv_heads", "2"}})
    options.set_text(key, value);
  const train::Model llama = train::make_model({.options = options, .data = {.vocabulary = 7, .context = 8}});
  EXPECT_EQ(llama.cache.layers, 2);
  EXPECT_EQ(llama.cache.heads, 2);
  EXPECT_EQ(llama.cache.depth, 4);
  options.set_text("name", "gpt");
  const train::Model gpt = train::make_model({.options = options, .data = {.vocabulary = 7, .context = 8}});
  EXPECT_EQ(gpt.cache.layers, 2);
  EXPECT_EQ(gpt.cache.heads, 6);
  EXPECT_EQ(gpt.cache.depth, 4);
}

TEST(MadeModels, OfGptTakeNoMoreSymbolsAtOnceThanTheyHavePositions) {
  Options options(training_sections().front().options);
  options.set_text("name", "gpt");
  options.set_text("hidden", "8");
  const train::Model gpt = train::make_model({.options = options, .data = {.vocabulary = 7, .context = 8}});
  EXPECT_EQ(message_of([&] {
              gpt.forward(zeros({1, 9}, TensorOptions(kInt64)));
            }),
            "gpt: 9 symbols at once, but only 8 positions");
  EXPECT_NO_THROW(gpt.forward(zeros({1, 8}, TensorOptions(kInt64))));
}

}  // namespace
}  // namespace tenon::test
