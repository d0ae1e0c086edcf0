// Every model by name: what the switches of [train] promise holds for each of them.
#include "train/experiment_fixture.h"

#include <tenon/train/model.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

bool same_results(const ExperimentResult& a, const ExperimentResult& b) {
  return same_bits(a.losses, b.losses) && a.epochs.back().test_loss == b.epochs.back().test_loss &&
         (a.test_accuracy == b.test_accuracy || (std::isnan(a.test_accuracy) && std::isnan(b.test_accuracy)));
}

class Models : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000, /*in_words=*/true);
  }
  /// A few steps of a model as small as it still has every part; `more` wins.
  ExperimentResult run_small(const std::string& model, Words more) {
    Words words{"model.hidden=8",     "model.layers=2",     "model.heads=2",     "model.context=16",
                "model.dropout=0.1",  "train.batch_size=8", "train.max_steps=3", "train.test_batch_size=16",
                "data.test_limit=16", "train.lr=0.01"};
    return run_model(model, std::move(words), more);
  }
  /// What such a run says against `more`.
  std::string mistake(const std::string& model, Words more) {
    try {
      run_small(model, std::move(more));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

/// resnet8 stands for the larger ones, whose code it shares.
const Words kAll = {"mlp",     "lenet", "vit", "resnet8", "unet", "ddpm", "latent-diffusion",
                    "lstm-lm", "bert",  "gpt", "llama",   "moe"};

/// Whether the model can be made when [model] has these settings alone.
bool is_made(const std::string& model, const std::vector<std::string>& settings) {
  const std::vector<SectionSpec> sections = training_sections();
  OptionSchema schema;
  for (const OptionSpec& option : sections.front().options)
    if (option.name == "name" || std::ranges::find(settings, option.name) != settings.end()) schema.push_back(option);
  Options options(schema);
  options.set("name", model);
  const bool is_language = reads_text(train::task_of(model));
  const train::DataShape data{.vocabulary = is_language ? 32 : 0, .context = is_language ? 16 : 0};
  try {
    train::make_model({.options = options, .data = data});
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_F(Models, EachReadsTheSettingsThatItDeclaresAndNoOther) {
  const Words of_the_data = {"context", "vocabulary", "image_size", "channels", "classes"};
  for (const std::string& model : train::model_names()) {
    const Words settings = train::settings_of(model);
    EXPECT_TRUE(is_made(model, settings)) << model;
    for (const std::string& left_out : settings) {
      if (std::ranges::find(of_the_data, left_out) != of_the_data.end()) continue;
      Words fewer = settings;
      std::erase(fewer, left_out);
      EXPECT_FALSE(is_made(model, fewer)) << model << " does not read " << left_out;
    }
  }
}

TEST_F(Models, CheckpointingChangesNothingToTheLastBit) {
  for (const std::string& model : kAll) {
    const ExperimentResult plain = run_small(model, {});
    const ExperimentResult checkpointed = run_small(model, {"train.checkpoint=true"});
    EXPECT_TRUE(same_results(plain, checkpointed)) << model << ": dropout, running statistics";
    EXPECT_EQ(plain.losses.size(), 3u);
  }
}

TEST_F(Models, TheFirstBlockMayRunAgainAlone) {
  const auto requests = [](const ExperimentResult& result) { return result.memory.allocations.allocated; };
  for (const std::string& model : kAll) {
    const ExperimentResult plain = run_small(model, {});
    const ExperimentResult first = run_small(model, {"train.checkpoint=true", "train.checkpoint_blocks=1"});
    EXPECT_TRUE(same_results(plain, first)) << model;
    EXPECT_GT(requests(first), requests(plain)) << model;
    EXPECT_LT(requests(first), requests(run_small(model, {"train.checkpoint=true"}))) << model;
  }
}

TEST_F(Models, InPlaceActivationsAndZeroedGradientsChangeNothing) {
  for (const std::string& model : kAll) {
    const ExperimentResult plain = run_small(model, {"model.activation=\"relu\""});
    const bool overwrites = model != "ddpm" && model != "latent-diffusion";  // these are refused: SiLU and GELU alone
    if (overwrites) {
      const ExperimentResult in_place =
          run_small(model, {"model.activation=\"relu\"", "train.inplace_activations=true"});
      EXPECT_TRUE(same_results(plain, in_place)) << model;
    }
    // An expert that no symbol was sent to has no gradient, and AdamW moves on where it has one of zeros.
    if (model == "moe") continue;
    EXPECT_TRUE(same_results(plain, run_small(model, {"model.activation=\"relu\"", "train.zero_grad=\"zero\""})))
        << model;
  }
}

TEST_F(Models, AllTechniquesTogetherChangeNoMoreThanMicroBatchesDo) {
  const Words parts = {"train.micro_batches=4", "model.activation=\"relu\""};
  Words all = parts;
  all.insert(all.end(), {"train.checkpoint=true", "train.inplace_activations=true", "train.zero_grad=\"zero\""});
  EXPECT_TRUE(same_results(run_small("gpt", parts), run_small("gpt", all)));
}

TEST_F(Models, MicroBatchesAddUpToTheBatch) {
  // Without dropout, whose numbers are drawn per micro-batch, and without models whose batch norm sees the smaller one.
  const Words exact = {"train.precision=\"float64\"", "train.optimizer=\"sgd\"", "model.dropout=0.0"};
  for (const char* model : {"mlp", "lenet", "vit", "lstm-lm", "gpt"}) {
    Words split = exact;
    split.push_back("train.micro_batches=4");
    const ExperimentResult whole = run_small(model, exact), parts = run_small(model, split);
    for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], parts.losses[i], 1e-9) << model;
    EXPECT_NEAR(whole.epochs.back().test_loss, parts.epochs.back().test_loss, 1e-9) << model;
  }
}

TEST_F(Models, TestingWithAHistoryChangesNoFigure) {
  EXPECT_TRUE(same_results(run_small("gpt", {}), run_small("gpt", {"train.eval_no_grad=false"})));
  EXPECT_TRUE(same_results(run_small("unet", {}), run_small("unet", {"train.eval_no_grad=false"})));
}

TEST_F(Models, ParametersAreThoseOfTheirPapers) {
  const auto parameters = [&](const std::string& model, Words more) {
    more.push_back("train.max_steps=1");
    more.push_back("data.test_limit=1");
    more.push_back("train.batch_size=1");
    return run_small(model, std::move(more)).parameters;
  };
  EXPECT_EQ(parameters("resnet18", {}), 11'172'810);  // one input channel, ten classes, stem of 3 by 3
  // A block of gpt has 12 w^2 + 13 w; then the tables and the last normalisation (w = 8, 6 letters and a space).
  EXPECT_EQ(parameters("gpt", {}), 2 * (12 * 64 + 13 * 8) + 7 * 8 + 16 * 8 + 16);
  // An LSTM has 8 w^2 + 8 w; then the table and the bias of its symbols.
  EXPECT_EQ(parameters("lstm-lm", {}), 2 * (8 * 64 + 8 * 8) + 7 * 8 + 7);
  EXPECT_EQ(parameters("gpt", {"model.tied=false"}) - parameters("gpt", {}), 7 * 8);
  EXPECT_EQ(parameters("gpt", {"model.vocabulary=100"}) - parameters("gpt", {}), 93 * 8);
}

TEST_F(Models, ARunThatWasInterruptedEqualsOneThatWasNot) {
  for (const char* model : {"gpt", "resnet8", "bert", "ddpm", "latent-diffusion", "moe"}) {
    // Stopped in the middle of the second epoch, with dropout, a schedule and a part of the epoch's loss behind it.
    const Words course = {"train.epochs=3",     "train.max_steps=0",       "data.limit=32", "train.schedule=\"cosine\"",
                          "train.momentum=0.9", "train.clip_grad_norm=1.0"};
    const std::string file = (folder / "state.safetensors").string();
    const auto with = [&](Words more) {
      more.insert(more.begin(), course.begin(), course.end());
      return run_small(model, more);
    };
    const ExperimentResult whole = with({});
    const ExperimentResult first = with({"train.stop_at=6", "train.save=\"" + file + "\""});
    const ExperimentResult second = with({"train.resume=\"" + file + "\""});
    ASSERT_EQ(whole.losses.size(), 12u);
    ASSERT_EQ(first.losses.size(), 6u);
    std::vector<double> joined = first.losses;
    joined.insert(joined.end(), second.losses.begin(), second.losses.end());
    EXPECT_EQ(joined, whole.losses) << model;
    EXPECT_EQ(second.epochs.front().train_loss, whole.epochs[1].train_loss) << model << ": the mean over all its steps";
    EXPECT_EQ(second.epochs.back().test_loss, whole.epochs.back().test_loss) << model;
  }
}

TEST_F(Models, ResumingAnotherRunIsRefused) {
  const std::string file = "\"" + (folder / "state.safetensors").string() + "\"";
  run_small("mlp", {"train.save=" + file});
  const std::string resume = "train.resume=" + file;
  EXPECT_THAT(mistake("mlp", {"train.seed=48", resume}), AllOf(HasSubstr("seed 47"), HasSubstr("has 48")));
  EXPECT_THAT(mistake("mlp", {"train.batch_size=4", resume}), HasSubstr("batch size 8"));
  EXPECT_THAT(mistake("lenet", {resume}), Not(HasSubstr("accepted")));
  std::filesystem::resize_file(folder / "state.safetensors", 100);
  EXPECT_THAT(mistake("mlp", {resume}), HasSubstr("state.safetensors"));
}

TEST_F(Models, GptLearnsText) {
  const ExperimentResult result = run_small("gpt", {"model.hidden=16", "train.max_steps=60", "train.epochs=60"});
  EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
  EXPECT_GT(result.test_accuracy, 0.3);
}

TEST_F(Models, LlamaLearnsTextWithKeysThatServeTwoHeads) {
  const ExperimentResult result = run_small(
      "llama", {"model.hidden=16", "model.heads=4", "model.kv_heads=2", "train.max_steps=60", "train.epochs=60"});
  EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
  EXPECT_GT(result.test_accuracy, 0.3);
  // Symbols, then of each block: queries and what is joined, keys and values, three of the perceptron, two norms.
  const std::int64_t block = 2 * 16 * 16 + 2 * 16 * 8 + 3 * 16 * 64 + 2 * 16;
  EXPECT_EQ(result.parameters, 7 * 16 + 2 * block + 16);
}

TEST_F(Models, BertTellsMaskedSymbolsFromWhatIsAroundThem) {
  const ExperimentResult result = run_small(
      "bert", {"model.hidden=32", "model.dropout=0.0", "train.lr=0.002", "train.max_steps=400", "train.epochs=400"});
  EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
  EXPECT_GT(result.test_accuracy, 0.3) << "one of seven letters";
}

TEST_F(Models, MoeLearnsTextAndUsesItsExpertsMoreEvenlyWithTheLossThatAsksForIt) {
  const Words course = {"model.hidden=16", "model.dropout=0.0", "train.max_steps=60", "train.epochs=60"};
  const ExperimentResult result = run_small("moe", course);
  EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
  EXPECT_GT(result.test_accuracy, 0.3);
  // Symbols, of each block attention, a router and eight experts of three matrices, two norms; a norm.
  const std::int64_t block = 4 * 16 * 16 + 16 * 8 + 8 * 3 * 16 * 64 + 2 * 16;
  EXPECT_EQ(result.parameters, 7 * 16 + 2 * block + 16);
  // An even use of the experts adds 1 times the weight to the loss, an uneven one more.
  const auto first_loss = [&](const char* balance) {
    return run_small("moe", {"model.dropout=0.0", "train.max_steps=1", balance}).losses.front();
  };
  const double imbalance = first_loss("model.balance=1.0") - first_loss("model.balance=0.0");
  EXPECT_GE(imbalance, 0.99);
  EXPECT_LT(imbalance, 8);
}

TEST_F(Models, DdpmLearnsTheNoise) {
  const ExperimentResult result =
      run_small("ddpm", {"model.layers=1", "model.dropout=0.0", "train.max_steps=40", "train.lr=0.003"});
  EXPECT_NEAR(result.losses.front(), 1, 0.1) << "it begins with no noise at all";
  EXPECT_LT(result.losses.back(), 0.8);
  EXPECT_TRUE(std::isnan(result.test_accuracy)) << "noise has no right answer";
}

TEST_F(Models, LatentDiffusionLearnsTheNoiseAndReadsItsText) {
  const Words course = {"model.layers=1", "model.multipliers=\"1,2\"", "model.dropout=0.0", "train.lr=0.003"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), course.begin(), course.end());
    return run_small("latent-diffusion", more);
  };
  const ExperimentResult result = with({"train.max_steps=40"});
  EXPECT_LT(result.losses.back(), 0.8 * result.losses.front());
  EXPECT_TRUE(std::isnan(result.test_accuracy));
  // Keys and values of the text, of each of the four blocks with attention; the lower level has none but in the middle.
  const std::int64_t more = with({"model.text_width=65"}).parameters - result.parameters;
  EXPECT_EQ(more, 2 * (8 + 8 + 8 + 16));
}

TEST_F(Models, UnetTellsPicturesFromTheirBackground) {
  const ExperimentResult result = run_small("unet", {"train.max_steps=30", "model.dropout=0.0", "model.layers=1"});
  EXPECT_LT(result.losses.back(), 0.9 * result.losses.front());
}

TEST_F(Models, WhatDoesNotFitIsRefusedWithTheNumbers) {
  EXPECT_THAT(mistake("gpt", {"data.name=\"fashion-mnist\""}), HasSubstr("learns from text"));
  EXPECT_THAT(mistake("lenet", {"data.name=\"text\""}), HasSubstr("learns from pictures"));
  EXPECT_THAT(mistake("gpt", {"model.heads=3"}), AllOf(HasSubstr("8"), HasSubstr("3")));
  EXPECT_THAT(mistake("gpt", {"model.vocabulary=3"}), HasSubstr("less than the 7 symbols"));
  EXPECT_THAT(mistake("gpt", {"model.context=5000"}), HasSubstr("make model.context smaller"));
  EXPECT_THAT(mistake("unet", {"model.layers=3"}), AllOf(HasSubstr("halved 3 times"), HasSubstr("multiple of 8")));
  EXPECT_THAT(mistake("ddpm", {"model.multipliers=\"1,2,2,2\""}), HasSubstr("cannot be halved 3 times"));
  EXPECT_THAT(mistake("ddpm", {"model.multipliers=\"1,x\""}), HasSubstr("1,x\" is not a list of whole numbers"));
  EXPECT_THAT(mistake("latent-diffusion", {"model.heads=3"}),
              HasSubstr("model.heads = 3 do not divide the 8 channels"));
  EXPECT_THAT(mistake("moe", {"model.experts=2", "model.experts_per_token=3"}), HasSubstr("3 of model.experts = 2"));
  EXPECT_THAT(mistake("gpt", {"model.positions=8"}), HasSubstr("16 symbols at once, but only 8 positions"));
  EXPECT_THAT(mistake("lenet", {"model.classes=3"}), HasSubstr("3 is less than the 10 classes"));
  EXPECT_THAT(mistake("vit", {"model.patch=5"}), HasSubstr("does not divide pictures of 28 by 28"));
}

}  // namespace
}  // namespace tenon::test
