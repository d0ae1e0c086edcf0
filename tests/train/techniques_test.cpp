// The techniques of [train] that save memory: what each changes of a run's figures, what excludes what, and that a run
// goes on under each of them as if it had never stopped.
// Long: a case for each technique, and for what it excludes.
#include "train/experiment_fixture.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class Techniques : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  ExperimentResult gpt(Words more) {
    Words words{"model.name=\"gpt\"",      "model.hidden=32",    "model.layers=3",
                "model.context=32",        "data.name=\"text\"", "data.path=\"" + (folder / "text").string() + "\"",
                "train.batch_size=8",      "train.epochs=2",     "train.max_steps=6",
                "train.test_batch_size=4", "data.test_limit=4"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  std::string mistake(Words more) {
    try {
      gpt(std::move(more));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  /// A run in two parts equals the run in one, under `more`.
  void expect_resumes(const Words& more) {
    const std::string file = "\"" + (folder / "state.safetensors").string() + "\"";
    const auto with = [&](Words words) {
      words.insert(words.end(), more.begin(), more.end());
      return gpt(words);
    };
    const ExperimentResult whole = with({});
    std::vector<double> joined = with({"train.stop_at=3", "train.save=" + file}).losses;
    const ExperimentResult second = with({"train.resume=" + file});
    joined.insert(joined.end(), second.losses.begin(), second.losses.end());
    EXPECT_TRUE(same_bits(whole.losses, joined)) << more.front();
    EXPECT_EQ(whole.epochs.back().test_loss, second.epochs.back().test_loss) << more.front();
  }
  static std::int64_t peak(const ExperimentResult& result, Purpose purpose) {
    return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
  static double figure(const ExperimentResult& result, std::string_view name) {
    for (const auto& [known, value] : result.figures)
      if (known == name) return value;
    ADD_FAILURE() << "no figure " << name;
    return 0;
  }
};

TEST_F(Techniques, OptimizerInBackwardChangesNoLossAndHoldsOnlyTheLargestGradients) {
  const Words small = {"train.batch_size=1", "model.hidden=128"};  // parameters weigh more than what passes
  const auto with = [&](Words more) {
    more.insert(more.end(), small.begin(), small.end());
    return gpt(more);
  };
  const ExperimentResult after = with({}), inside = with({"train.optimizer_in_backward=true"});
  EXPECT_TRUE(same_bits(after.losses, inside.losses));
  EXPECT_LT(peak(inside, Purpose::kGradient), peak(after, Purpose::kGradient) / 2);
  for (const ExperimentResult& result : {after, inside}) {
    EXPECT_NEAR(static_cast<double>(peak(result, Purpose::kGradient)) / figure(result, "expected_gradient_bytes"), 1,
                0.03);
  }
}

TEST_F(Techniques, OptimizerInBackwardIsRefusedWhereGradientsMustBeThereTogether) {
  const std::string on = "train.optimizer_in_backward=true";
  EXPECT_THAT(mistake({on, "train.micro_batches=2"}),
              AllOf(HasSubstr("train.optimizer_in_backward"), HasSubstr("have to add up before the update")));
  EXPECT_THAT(mistake({on, "train.clip_grad_norm=1.0"}), HasSubstr("the norm of all gradients"));
  EXPECT_THAT(mistake({on, "train.zero_grad=\"zero\""}), HasSubstr("leave it at \"none\""));
  EXPECT_THAT(mistake({on, "train.precision=\"float16-mixed\""}), HasSubstr("the loss is scaled"));
}

TEST_F(Techniques, AChunkedLossIsTheLossAndKeepsNoLogits) {
  for (const char* model : {"gpt", "llama", "lstm-lm"}) {
    const Words words = {std::string("model.name=\"") + model + "\"", "train.precision=\"float64\"",
                         "model.vocabulary=500"};
    Words chunked = words;
    chunked.push_back("train.chunked_loss=7");
    const ExperimentResult whole = gpt(words), parts = gpt(chunked);
    ASSERT_EQ(whole.losses.size(), parts.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], parts.losses[i], 1e-9) << model;
    EXPECT_LT(peak(parts, Purpose::kActivation), peak(whole, Purpose::kActivation) - 8 * 32 * 500 * 8) << model;
  }
}

TEST_F(Techniques, TheoryOfAChunkedLossIsNearWhatItTakes) {
  const ExperimentResult result = gpt({"model.vocabulary=2000", "train.chunked_loss=4", "train.test_batch_size=1"});
  EXPECT_NEAR(static_cast<double>(peak(result, Purpose::kActivation)) / figure(result, "expected_activation_bytes"), 1,
              0.03);
  EXPECT_NEAR(static_cast<double>(peak(result, Purpose::kGradient)) / figure(result, "expected_gradient_bytes"), 1,
              0.03);
}

TEST_F(Techniques, SomeBlocksThatRunAgainChangeNoLossAndLeaveWhatTheorySays) {
  const ExperimentResult none = gpt({});
  std::int64_t former = peak(none, Purpose::kActivation);
  for (const char* blocks : {"1", "2"}) {
    const ExperimentResult some = gpt({"train.checkpoint=true", std::string("train.checkpoint_blocks=") + blocks});
    EXPECT_TRUE(same_bits(none.losses, some.losses)) << blocks;
    EXPECT_LT(peak(some, Purpose::kActivation), former) << blocks;
    former = peak(some, Purpose::kActivation);
    EXPECT_NEAR(static_cast<double>(former) / figure(some, "expected_activation_bytes"), 1, 0.03) << blocks;
  }
}

TEST_F(Techniques, EveryModelRunsItsFirstBlocksAgainWithoutChangingALoss) {
  for (const char* model : {"gpt", "llama", "moe", "lstm-lm", "bert"}) {
    const std::string name = std::string("model.name=\"") + model + "\"";
    const Words plain = {name, "model.heads=4", "model.kv_heads=4"};
    Words some = plain;
    some.insert(some.end(), {"train.checkpoint=true", "train.checkpoint_blocks=1"});
    const ExperimentResult kept = gpt(plain), again = gpt(some);
    EXPECT_TRUE(same_bits(kept.losses, again.losses)) << model;
    EXPECT_LT(again.memory.requested_bytes.peak, kept.memory.requested_bytes.peak) << model;
  }
}

TEST_F(Techniques, WhatBlocksKeepChangesNoLossOfAnyModel) {
  const std::string pictures = "data.path=\"" + folder.string() + "\"";
  const Words shown = {"data.name=\"fashion-mnist\"", pictures};
  struct Subject {
    Words words;
    const char *dear, *cheap;  ///< what its blocks compute
  };
  const std::vector<Subject> models = {
      {{"model.name=\"gpt\"", "model.dropout=0.2"}, "products,attention", "gelu,layer_norm,add"},
      {{"model.name=\"llama\"", "model.heads=4", "model.kv_heads=2"}, "products,attention", "silu,mul,add"},
      {{"model.name=\"moe\"", "model.heads=4", "model.kv_heads=4"}, "products,attention", "softmax,mul,add"},
      {{"model.name=\"bert\"", "train.precision=\"bfloat16-mixed\""}, "products,attention", "gelu,layer_norm,add"},
      {{"model.name=\"resnet8\"", shown[0], shown[1]}, "convolutions", "relu,batch_norm,add"},
      {{"model.name=\"lenet\"", shown[0], shown[1]}, "products,convolutions", "relu,max_pool"},
      {{"model.name=\"mlp\"", shown[0], shown[1]}, "products", "relu"}};
  const auto keep = [](const char* what) { return std::string("train.checkpoint_keep=\"") + what + "\""; };
  for (const auto& [subject, dear, cheap] : models) {
    Words words = subject;
    const ExperimentResult plain = gpt(words);
    words.emplace_back("train.checkpoint=true");
    const ExperimentResult inputs = gpt(words);
    words.push_back(keep(dear));
    const ExperimentResult kept = gpt(words);
    EXPECT_TRUE(same_bits(plain.losses, kept.losses)) << words.front();
    EXPECT_GE(peak(kept, Purpose::kActivation), peak(inputs, Purpose::kActivation)) << words.front();
    words.back() = keep(cheap);
    EXPECT_TRUE(same_bits(plain.losses, gpt(words).losses)) << words.front();
  }
}

TEST_F(Techniques, WhatBlocksKeepIsRefusedWhereItMakesNoSense) {
  const std::string on = "train.checkpoint=true", keep = "train.checkpoint_keep=\"products\"";
  EXPECT_THAT(mistake({keep}), AllOf(HasSubstr("train.checkpoint_keep"), HasSubstr("everything is kept")));
  EXPECT_THAT(mistake({on, keep, "train.inplace_activations=true"}), HasSubstr("overwrites"));
  EXPECT_THAT(mistake({on, "train.checkpoint_keep=\"softmaks\""}),
              AllOf(HasSubstr("'softmaks' is none of products"), HasSubstr("did you mean 'softmax'?")));
}

TEST_F(Techniques, SettingsThatWouldChangeNothingAreRefusedWithTheNextStep) {
  const std::string on = "train.checkpoint=true", low = "train.lora_rank=4";
  EXPECT_THAT(mistake({on, "train.checkpoint_blocks=4"}),
              AllOf(HasSubstr("train.checkpoint_blocks"), HasSubstr("'gpt' has 3"), HasSubstr("at most")));
  EXPECT_THAT(mistake({on, "train.checkpoint_keep=\"attention,convolutions\""}),
              AllOf(HasSubstr("no block of 'gpt' that runs again computes convolutions"),
                    HasSubstr("scaled_dot_product_attention")));
  EXPECT_THAT(mistake({on, "train.checkpoint_keep=\"batch_norm\""}), HasSubstr("computes batch_norm"));
  EXPECT_THAT(mistake({on, "train.checkpoint_keep=\"tanh\"", "model.name=\"lstm-lm\""}),
              HasSubstr("nothing that they compute can be kept"));
  EXPECT_THAT(mistake({"train.lora_alpha=8.0"}),
              AllOf(HasSubstr("train.lora_alpha"), HasSubstr("set train.lora_rank")));
  EXPECT_THAT(mistake({"train.lora_layers=\"qkv\""}), HasSubstr("train.lora_layers"));
  EXPECT_THAT(mistake({low, "train.lora_alpha=0.0"}), HasSubstr("nothing of what the matrices learn is added"));
  EXPECT_THAT(mistake({"train.lora_rank=33"}), AllOf(HasSubstr("train.lora_rank"), HasSubstr("at most 32")));
  for (const char* scheme : {"none", "dynamic", "weight_only_int4"})
    EXPECT_THAT(mistake({std::string("train.quantize=\"") + scheme + "\"", "train.quantize_batches=2"}),
                AllOf(HasSubstr("train.quantize_batches"), HasSubstr(scheme)));
}

TEST_F(Techniques, InPlaceActivationsAreRefusedWhereNothingIsOverwritten) {
  const std::string in_place = "train.inplace_activations=true", mixed = "train.precision=\"bfloat16-mixed\"";
  EXPECT_THAT(mistake({in_place, mixed}), AllOf(HasSubstr("GELU"), HasSubstr("set model.activation to \"relu\"")));
  EXPECT_EQ(mistake({in_place, mixed, "model.activation=\"relu\""}), "accepted");
  EXPECT_THAT(mistake({in_place, mixed, "model.name=\"llama\""}), HasSubstr("SiLU"));
  EXPECT_THAT(mistake({in_place, mixed, "model.name=\"bert\"", "model.activation=\"relu\""}), HasSubstr("'bert'"));
  EXPECT_THAT(mistake({in_place, "model.name=\"lstm-lm\""}), HasSubstr("set model.dropout"));
  EXPECT_EQ(mistake({in_place, "model.name=\"lstm-lm\"", "model.dropout=0.1"}), "accepted");
}

// Before the run makes a folder: of a run on addresses, with as few examples as there are parts.
TEST_F(Techniques, WhatBlocksThereAreIsKnownBeforeARun) {
  ConfigRequest request;
  request.overrides = {"model.name=\"lenet\"", "data.path=\"" + folder.string() + "\"", "train.checkpoint=true",
                       "train.checkpoint_blocks=4"};
  request.use_environment = false;
  request.sections = training_sections();
  shutdown();
  try {
    check_experiment(Config::load(request).experiment());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'lenet' has 3"));
  }
  EXPECT_TRUE(open_devices().empty());
}

TEST_F(Techniques, ABudgetChoosesTheFewestBlocksThatKeepToIt) {
  const ExperimentResult none = gpt({});
  const ExperimentResult chosen = gpt({"train.checkpoint=true", "train.checkpoint_budget=0.8"});
  EXPECT_TRUE(same_bits(none.losses, chosen.losses));
  const auto share = [&](const ExperimentResult& result) {
    return static_cast<double>(peak(result, Purpose::kActivation)) /
           static_cast<double>(peak(none, Purpose::kActivation));
  };
  const int blocks = static_cast<int>(figure(chosen, "checkpointed_blocks"));
  ASSERT_GT(blocks, 0);
  EXPECT_LE(share(chosen), 0.8);
  const Words fewer = {"train.checkpoint=true", "train.checkpoint_blocks=" + std::to_string(blocks - 1)};
  EXPECT_GT(blocks == 1 ? 1 : share(gpt(fewer)), 0.8);
}

TEST_F(Techniques, ABudgetIsKeptUnderMixedPrecisionToo) {
  const std::string mixed = "train.precision=\"bfloat16-mixed\"";
  const ExperimentResult none = gpt({mixed});
  const ExperimentResult chosen = gpt({mixed, "train.checkpoint=true", "train.checkpoint_budget=0.8"});
  EXPECT_TRUE(same_bits(none.losses, chosen.losses));
  EXPECT_GT(figure(chosen, "checkpointed_blocks"), 0);
  EXPECT_LE(static_cast<double>(peak(chosen, Purpose::kActivation)),
            0.8 * static_cast<double>(peak(none, Purpose::kActivation)));
}

// The branch has 16 bits: a sum in its place would have rounded the stream, and changed the losses.
TEST_F(Techniques, InPlaceActivationsLeaveTheStreamInFloat32UnderMixedPrecision) {
  const Words words = {"train.precision=\"bfloat16-mixed\"", "model.activation=\"relu\""};
  Words inplace = words;
  inplace.push_back("train.inplace_activations=true");
  EXPECT_TRUE(same_bits(gpt(words).losses, gpt(inplace).losses));
}

TEST_F(Techniques, ABudgetThatCannotBeKeptIsRefusedWithTheReason) {
  const std::string on = "train.checkpoint=true", budget = "train.checkpoint_budget=0.5";
  EXPECT_THAT(mistake({budget}), AllOf(HasSubstr("train.checkpoint_budget"), HasSubstr("train.checkpoint is off")));
  EXPECT_THAT(mistake({"train.checkpoint_blocks=1"}), HasSubstr("train.checkpoint is off"));
  EXPECT_THAT(mistake({on, budget, "train.checkpoint_blocks=1"}), HasSubstr("leave one out"));
  EXPECT_THAT(mistake({on, budget, "model.name=\"lstm-lm\""}), HasSubstr("no closed form"));
  EXPECT_THAT(mistake({on, "train.checkpoint_budget=0.01"}), HasSubstr("where all 3 blocks run again"));
}

TEST_F(Techniques, AChunkedLossIsOfLanguageModels) {
  EXPECT_THAT(mistake({"model.name=\"mlp\"", "data.name=\"fashion-mnist\"", "data.path=\"" + folder.string() + "\"",
                       "train.chunked_loss=2"}),
              AllOf(HasSubstr("train.chunked_loss"), HasSubstr("language models")));
}

TEST_F(Techniques, ARunGoesOnUnderEachOfThem) {
  expect_resumes({"train.optimizer_in_backward=true"});
  expect_resumes({"train.chunked_loss=4"});
  expect_resumes({"train.checkpoint=true", "train.checkpoint_blocks=2", "model.dropout=0.1"});
  expect_resumes({"train.checkpoint=true", "train.checkpoint_budget=0.8"});
  expect_resumes({"train.checkpoint=true", "train.checkpoint_keep=\"attention\"", "model.dropout=0.1"});
  expect_resumes({"train.checkpoint=true", "train.checkpoint_keep=\"gelu,layer_norm\"", "model.dropout=0.1"});
  expect_resumes({"train.chunked_loss=4", "train.optimizer_in_backward=true", "train.checkpoint=true"});
  expect_resumes({"train.precision=\"bfloat16\"", "train.master_weights=true"});
  expect_resumes({"train.precision=\"bfloat16\"", "train.master_weights=true", "train.optimizer_in_backward=true"});
  expect_resumes({"train.precision=\"bfloat16\"", "train.master_weights=true", "train.optimizer_states=\"8bit\""});
}

// What was saved would not be what the settings say, and nobody would notice.
TEST_F(Techniques, ARunDoesNotGoOnAsAnotherOne) {
  const std::string file = "\"" + (folder / "state.safetensors").string() + "\"";
  const auto refused = [&](const Words& before, const Words& after) {
    Words first = before, second = after;
    first.insert(first.end(), {"train.stop_at=2", "train.save=" + file});
    gpt(first);
    second.push_back("train.resume=" + file);
    return mistake(second);
  };
  const std::string half = "train.precision=\"bfloat16\"", masters = "train.master_weights=true";
  EXPECT_THAT(refused({}, {half}), AllOf(HasSubstr("train.precision = float32"), HasSubstr("this one has bfloat16")));
  EXPECT_THAT(refused({half, masters}, {half}), HasSubstr("train.master_weights = true"));
  EXPECT_THAT(refused({"train.precision=\"float16-mixed\""}, {}), HasSubstr("with a scaled loss"));
  EXPECT_THAT(refused({}, {"model.heads=2"}), HasSubstr("model.heads = 4"));
  const Words low = {"train.lora_rank=4", "train.lora_weights=\"int4\""};
  EXPECT_THAT(refused(low, {"train.lora_rank=8", low[1]}), HasSubstr("train.lora_rank = 4"));
  EXPECT_THAT(refused(low, {low[0], "train.lora_weights=\"int8\""}), HasSubstr("train.lora_weights = int4"));
  EXPECT_EQ(refused({}, {"train.precision=\"bfloat16-mixed\"", "model.dropout=0.1", "train.lr=1e-4"}), "accepted");
}

TEST_F(Techniques, LowRankMatricesLearnBesideIntegersInEveryPrecision) {
  for (const char* weights : {"int8", "int4"}) {
    for (const char* precision : {"bfloat16", "float64"}) {
      const ExperimentResult result = gpt({"train.lora_rank=4", std::string("train.lora_weights=\"") + weights + "\"",
                                           std::string("train.precision=\"") + precision + "\"", "train.lr=1e-2"});
      EXPECT_LT(result.losses.back(), result.losses.front()) << weights << " beside " << precision;
    }
  }
}

TEST_F(Techniques, OffloadedActivationsChangeNoLossAndLeaveTheDevice) {
  const Words device = {"device.name=\"simulated:0\"", "device.simulated.mode=\"backed\"", "model.layers=6"};
  const auto with = [&](Words more) {
    more.insert(more.end(), device.begin(), device.end());
    return gpt(more);
  };
  const ExperimentResult plain = with({}), away = with({"train.offload=\"activations\""});
  EXPECT_TRUE(same_bits(plain.losses, away.losses));
  EXPECT_LT(peak(away, Purpose::kActivation), peak(plain, Purpose::kActivation) / 2);
  EXPECT_EQ(peak(away, Purpose::kParameter), peak(plain, Purpose::kParameter));
  expect_resumes({"train.offload=\"activations\"", "device.name=\"simulated:0\"", "device.simulated.mode=\"backed\""});
}

TEST_F(Techniques, ActivationsAreNotOffloadedWhereThatLeavesNothing) {
  const std::string on = "train.offload=\"activations\"";
  EXPECT_THAT(mistake({on}), AllOf(HasSubstr("train.offload"), HasSubstr("cpu is host memory")));
  EXPECT_THAT(mistake({on, "device.name=\"simulated:0\"", "device.simulated.mode=\"backed\"", "train.checkpoint=true"}),
              HasSubstr("a block keeps its input alone"));
}

TEST_F(Techniques, StatesIn8BitsTakeWhatTheorySaysAndLearnAsFullOnesDo) {
  const Words wide = {"model.hidden=64", "train.max_steps=24", "train.epochs=20"};
  for (const char* optimizer : {"train.optimizer=\"adamw\"", "train.optimizer=\"sgd\""}) {
    Words full_words = wide, packed_words = wide;
    full_words.emplace_back(optimizer);
    packed_words.insert(packed_words.end(), {optimizer, "train.optimizer_states=\"8bit\""});
    const ExperimentResult full = gpt(full_words), packed = gpt(packed_words);
    for (const ExperimentResult& result : {full, packed}) {
      EXPECT_EQ(static_cast<double>(peak(result, Purpose::kOptimizerState)), figure(result, "expected_optimizer_bytes"))
          << optimizer;
      EXPECT_NEAR(static_cast<double>(result.memory.requested_bytes.peak) / figure(result, "expected_total_bytes"), 1,
                  0.05)
          << optimizer;
    }
    EXPECT_FALSE(same_bits(full.losses, packed.losses)) << optimizer;
    EXPECT_NEAR(packed.losses.back(), full.losses.back(), 0.03 * full.losses.back()) << optimizer;
  }
}

TEST_F(Techniques, OffloadedStatesChangeNoLossAndLeaveOnTheDeviceWhatTheorySays) {
  for (const char* more :
       {"train.optimizer_states=\"full\"", "train.optimizer_states=\"8bit\"", "train.optimizer_in_backward=true"}) {
    const Words device = {"device.name=\"simulated:0\"", "device.simulated.mode=\"backed\"", "model.hidden=64", more};
    const auto with = [&](Words words) {
      words.insert(words.end(), device.begin(), device.end());
      return gpt(words);
    };
    const ExperimentResult plain = with({}), away = with({"train.offload=\"optimizer\""}),
                           both = with({"train.offload=\"both\""});
    EXPECT_TRUE(same_bits(plain.losses, away.losses)) << more;
    EXPECT_TRUE(same_bits(plain.losses, both.losses)) << more;
    for (const ExperimentResult& result : {away, both}) {
      EXPECT_EQ(static_cast<double>(peak(result, Purpose::kOptimizerState)), figure(result, "expected_optimizer_bytes"))
          << more;
      EXPECT_LT(peak(result, Purpose::kOptimizerState), peak(plain, Purpose::kOptimizerState)) << more;
    }
    EXPECT_NEAR(static_cast<double>(away.memory.requested_bytes.peak) / figure(away, "expected_total_bytes"), 1, 0.05)
        << more;
    EXPECT_EQ(peak(away, Purpose::kActivation), peak(plain, Purpose::kActivation)) << more;
    EXPECT_LT(peak(both, Purpose::kActivation), peak(plain, Purpose::kActivation)) << more;
  }
}

TEST_F(Techniques, ARunGoesOnWithStatesElsewhere) {
  expect_resumes({"train.optimizer_states=\"8bit\"", "model.hidden=64"});
  expect_resumes({"train.optimizer_states=\"8bit\"", "model.hidden=64", "train.optimizer_in_backward=true"});
  for (const char* offload : {"train.offload=\"optimizer\"", "train.offload=\"both\""}) {
    for (const char* states : {"train.optimizer_states=\"full\"", "train.optimizer_states=\"8bit\""})
      expect_resumes(
          {offload, states, "model.hidden=64", "device.name=\"simulated:0\"", "device.simulated.mode=\"backed\""});
  }
}

TEST_F(Techniques, StatesAreNotMovedWhereThatLeavesNothing) {
  const std::string sgd = "train.optimizer=\"sgd\"", still = "train.momentum=0.0";
  for (const char* offload : {"train.offload=\"optimizer\"", "train.offload=\"both\""}) {
    EXPECT_THAT(mistake({offload}), AllOf(HasSubstr("train.offload"), HasSubstr("cpu is host memory")));
    EXPECT_THAT(mistake({offload, sgd, still, "device.name=\"simulated:0\"", "device.simulated.mode=\"backed\""}),
                HasSubstr("remembers nothing"));
  }
  EXPECT_THAT(mistake({"train.optimizer_states=\"8bit\"", sgd, still}),
              AllOf(HasSubstr("train.optimizer_states"), HasSubstr("remembers nothing")));
  EXPECT_THAT(mistake({"train.offload=\"both\"", "device.name=\"simulated:0\"", "device.simulated.mode=\"backed\"",
                       "train.checkpoint=true"}),
              HasSubstr("a block keeps its input alone"));
}

TEST_F(Techniques, LoraTrainsAndRemembersWhatTheorySays) {
  const ExperimentResult full = gpt({}), lora = gpt({"train.lora_rank=4"});
  constexpr std::int64_t kTrained = 3 * 4 * (128 + 64 + 160 + 160);  // of 3 blocks: qkv, out, widen, narrow
  EXPECT_EQ(figure(lora, "trained_parameters"), kTrained);
  EXPECT_EQ(lora.parameters, full.parameters + kTrained);
  EXPECT_EQ(peak(lora, Purpose::kOptimizerState), 2 * 4 * kTrained);
  EXPECT_EQ(figure(lora, "expected_optimizer_bytes"), 2 * 4 * kTrained);
  EXPECT_EQ(peak(lora, Purpose::kParameter), peak(full, Purpose::kParameter) + 4 * kTrained);
  EXPECT_LT(peak(lora, Purpose::kGradient), peak(full, Purpose::kGradient));
  EXPECT_EQ(lora.losses.front(), full.losses.front()) << "nothing is added at first";
  EXPECT_LT(lora.losses.back(), lora.losses.front());
  for (const char* more : {"train.checkpoint=true", "train.optimizer_in_backward=true"})
    EXPECT_TRUE(same_bits(gpt({"train.lora_rank=4", more}).losses, lora.losses)) << more;
  EXPECT_EQ(figure(gpt({"train.lora_rank=4", "train.lora_layers=\"qkv\""}), "trained_parameters"), 3 * 4 * 128);
  expect_resumes({"train.lora_rank=4"});
  EXPECT_THAT(mistake({"train.lora_rank=4", "train.lora_layers=\"nothing\""}), HasSubstr("no linear layer"));
  EXPECT_THAT(mistake({"train.lora_rank=4", "train.quantize=\"dynamic\""}), HasSubstr("merge the matrices first"));
}

TEST_F(Techniques, LoraOnWeightsOfIntegersTrainsAndTakesTheirBytes) {
  const ExperimentResult floats = gpt({"train.lora_rank=4"});
  constexpr std::int64_t kWeights = 3 * (3 + 1 + 4 + 4) * 32 * 32, kRows = 3 * (96 + 32 + 128 + 32);  // of 3 blocks
  const std::string ranks = "train.lora_rank=4";
  const ExperimentResult bytes = gpt({ranks, "train.lora_weights=\"int8\""}),
                         halves = gpt({ranks, "train.lora_weights=\"int4\""});
  // A scale for each row of 8 bits; of 4 bits one for 64 weights, or for a row of 32.
  constexpr std::int64_t kScalesOfHalves = 3 * (96 + 32 + 128 + 2 * 32);
  const auto parameters = [](const ExperimentResult& result) {
    return result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)].current;
  };
  EXPECT_EQ(parameters(floats) - parameters(bytes), 4 * kWeights - (kWeights + 4 * kRows));
  EXPECT_EQ(parameters(floats) - parameters(halves), 4 * kWeights - (kWeights / 2 + 4 * kScalesOfHalves));
  EXPECT_EQ(bytes.memory
                .requested_by_element[static_cast<std::size_t>(Purpose::kParameter)]
                                     [static_cast<std::size_t>(ElementKind::kInt8)]
                .current,
            kWeights);
  EXPECT_EQ(figure(bytes, "trained_parameters"), figure(floats, "trained_parameters"));
  for (const ExperimentResult* result : {&bytes, &halves}) {
    EXPECT_LT(result->losses.back(), result->losses.front());
    EXPECT_NEAR(result->losses.front(), floats.losses.front(), 0.02 * floats.losses.front());
  }
  EXPECT_TRUE(same_bits(gpt({ranks, "train.lora_weights=\"int8\"", "train.checkpoint=true"}).losses, bytes.losses));
  expect_resumes({ranks, "train.lora_weights=\"int4\""});
  EXPECT_THAT(mistake({"train.lora_weights=\"int8\""}), HasSubstr("weights of integers do not learn"));
}

TEST_F(Techniques, AStepThatFailsAfterAnUpdateInBackwardIsNotTakenAgain) {
  const ExperimentResult plain = gpt({"train.optimizer_in_backward=true"});
  int recovered = 0, ended = 0;
  for (int nth = 90; nth < 190; nth += 5) {  // somewhere in the second step's backward
    try {
      const ExperimentResult survived =
          gpt({"train.optimizer_in_backward=true", "allocator.layers=[\"inject\"]",
               "allocator.inject.purpose=\"gradient\"", "allocator.inject.nth=" + std::to_string(nth)});
      recovered += static_cast<int>(survived.oom_recoveries);
      EXPECT_TRUE(same_bits(plain.losses, survived.losses)) << nth;
    } catch (const OutOfMemory&) {
      ++ended;
    }
  }
  EXPECT_GT(recovered, 0) << "nothing was updated yet";
  EXPECT_GT(ended, 0);
}

}  // namespace
}  // namespace tenon::test
