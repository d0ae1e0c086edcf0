// What each preset says, setting by setting: also of those that no number of parameters shows.
#include <tenon/runtime/config/config.h>
#include <tenon/train/config/unread_settings.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

/// "hidden 768, layers 12", in the order of the settings: of a configuration that says something else everywhere.
std::string says(const std::string& model, const std::string& preset) {
  ConfigRequest request;
  request.overrides = {"model.hidden=7",
                       "model.layers=11",
                       "model.heads=13",
                       "model.kv_heads=17",
                       "model.intermediate=19",
                       "model.vocabulary=23",
                       "model.positions=29",
                       "model.tied=false",
                       "model.activation=relu",
                       "model.patch=5",
                       "model.image_size=31",
                       "model.channels=37",
                       "model.classes=41",
                       "model.multipliers=\"9\"",
                       "model.attention_sides=\"9\"",
                       "model.text_width=43",
                       "model.rotary_factor=3.0",
                       "model.experts=3",
                       "model.experts_per_token=5"};
  request.overrides.push_back("model.name=" + model);
  request.overrides.push_back("model.preset=\"" + preset + "\"");
  request.use_environment = false;
  request.sections = training_sections();
  const std::string middle = " changes nothing: model.preset = \"" + preset + "\" says ";
  std::string all;
  for (const std::string& remark : unread_model_settings(Config::load(request))) {
    const std::size_t at = remark.find(middle);
    if (at == std::string::npos) continue;
    const std::string name = remark.substr(6, remark.find(' ') - 6);
    all += (all.empty() ? "" : ", ") + name + " " + remark.substr(at + middle.size());
  }
  return all;
}

TEST(PresetSettings, OfGpt2AreThoseOfItsPaper) {
  const std::string all = ", positions 1024, vocabulary 50257, tied true, activation gelu";
  EXPECT_EQ(says("gpt2", "small"), "hidden 768, layers 12, heads 12" + all);
  EXPECT_EQ(says("gpt2", "medium"), "hidden 1024, layers 24, heads 16" + all);
  EXPECT_EQ(says("gpt2", "large"), "hidden 1280, layers 36, heads 20" + all);
  EXPECT_EQ(says("gpt2", "xl"), "hidden 1600, layers 48, heads 25" + all);
}

TEST(PresetSettings, OfBertAreThoseOfItsPaper) {
  const std::string all = ", positions 512, vocabulary 30522, activation gelu";
  EXPECT_EQ(says("bert", "base"), "hidden 768, layers 12, heads 12" + all);
  EXPECT_EQ(says("bert", "large"), "hidden 1024, layers 24, heads 16" + all);
}

TEST(PresetSettings, OfLlamaAreThoseOfItsVersionsWithTheirFactors) {
  EXPECT_EQ(says("llama", "1B"),
            "hidden 2048, layers 16, heads 32, kv_heads 8, intermediate 8192, rotary_factor 32, vocabulary 128256, "
            "tied true");
  EXPECT_EQ(says("llama", "3B"),
            "hidden 3072, layers 28, heads 24, kv_heads 8, intermediate 8192, rotary_factor 32, vocabulary 128256, "
            "tied true");
  EXPECT_EQ(says("llama", "8B"),
            "hidden 4096, layers 32, heads 32, kv_heads 8, intermediate 14336, rotary_factor 8, vocabulary 128256")
      << "with an output layer of its own, as is said already";
  EXPECT_EQ(says("llama", "70B"),
            "hidden 8192, layers 80, heads 64, kv_heads 8, intermediate 28672, rotary_factor 8, vocabulary 128256");
}

TEST(PresetSettings, OfMixtralAreThoseOfItsPaper) {
  EXPECT_EQ(says("moe", "8x7B"),
            "hidden 4096, layers 32, heads 32, kv_heads 8, intermediate 14336, experts 8, experts_per_token 2, "
            "vocabulary 32000");
}

TEST(PresetSettings, OfModelsOfPicturesAreThoseOfTheirPapers) {
  const std::string vit = ", channels 3, classes 1000, image_size 224";
  EXPECT_EQ(says("vit", "B/16"), "hidden 768, layers 12, heads 12, activation gelu, patch 16" + vit);
  EXPECT_EQ(says("vit", "L/16"), "hidden 1024, layers 24, heads 16, activation gelu, patch 16" + vit);
  EXPECT_EQ(says("vit", "H/14"), "hidden 1280, layers 32, heads 16, activation gelu, patch 14" + vit);
  for (const char* const model : {"resnet18", "resnet50"})
    EXPECT_EQ(says(model, "imagenet"), "channels 3, classes 1000") << model;
  EXPECT_EQ(says("ddpm", "cifar10"),
            "hidden 128, layers 2, multipliers 1,2,2,2, attention_sides 16, channels 3, image_size 32");
  EXPECT_EQ(says("ddpm", "celebahq256"),
            "hidden 128, layers 2, multipliers 1,1,2,2,4,4, attention_sides 16, channels 3, image_size 256");
  EXPECT_EQ(says("latent-diffusion", "sd1.5"),
            "hidden 320, layers 2, heads 8, multipliers 1,2,4,4, text_width 768, channels 4, image_size 64");
}

TEST(PresetSettings, AreListedInTheHelpByTheirModels) {
  for (const SectionSpec& section : training_sections()) {
    if (section.name != "model") continue;
    const auto option = std::ranges::find(section.options, "preset", &OptionSpec::name);
    ASSERT_NE(option, section.options.end());
    EXPECT_EQ(option->help,
              "published sizes, instead of the settings that say them: B/16, L/16, H/14 (vit); imagenet (resnet18); "
              "imagenet (resnet50); cifar10, celebahq256 (ddpm); sd1.5 (latent-diffusion); base, large (bert); small, "
              "medium, large, xl (gpt2); 1B, 3B, 8B, 70B (llama); 8x7B (moe)");
  }
}

TEST(PresetSettings, OfAModelWithoutSizesNameWhoseTheyAre) {
  const auto refusal = [](const std::string& model, const std::string& preset) {
    try {
      says(model, preset);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal("llama", "large"),
            "model.preset = \"large\" is a size of bert and gpt2; llama has 1B, 3B, 8B, 70B");
  EXPECT_EQ(refusal("resnet18", "8x7B"), "model.preset = \"8x7B\" is a size of moe; resnet18 has imagenet");
  EXPECT_EQ(refusal("mlp", "base"), "accepted") << "nothing of it is read";
}

}  // namespace
}  // namespace tenon::test
