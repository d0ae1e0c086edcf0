// The table of examples/experiments/memory_techniques.toml: what theory expects in each row is what is measured, and
// each technique saves what is said of it.
#include "train/experiment_fixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace tenon::test {
namespace {

/// The peaks of one row, in bytes: measured, and expected.
struct Row {
  std::int64_t activations = 0, gradients = 0, state = 0, total = 0, parameters = 0;
  double expected_activations = 0, expected_gradients = 0, expected_state = 0, expected_total = 0;
  std::int64_t casts = 0;
  double expected_casts = 0;  ///< of parameters
  double kernel_workspace = 0;
  std::vector<double> losses;
};

/// A device that has addresses and computes nothing.
const std::vector<std::string> kOnAddresses = {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\"",
                                               "train.max_steps=2"};

/// Rows by name.
using Rows = std::map<std::string, Row>;

class MemoryTechniques : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    std::ofstream text(folder / "text");
    // As many symbols as the text of the file has.
    for (int i = 0; i < 40000; ++i) text << static_cast<char>(' ' + (i * i / 3 + i / 7) % 95);
  }

  /// Those of the file's rows that are `wanted`, all of them where none is named, with `more` on top of each.
  Rows rows(const std::vector<std::string>& more, const std::vector<std::string>& wanted = {}) {
    const Config config = load(more);
    Rows all;
    for (const SweepPoint& cell : config.sweep_cells()) {
      if (!wanted.empty() && std::ranges::find(wanted, cell.values.front()) == wanted.end()) continue;
      std::vector<std::string> words = cell.overrides;
      words.insert(words.end(), more.begin(), more.end());
      all.emplace(cell.values.front(), run_row(load(words)));
    }
    return all;
  }

 private:
  Config load(const std::vector<std::string>& overrides) const {
    ConfigRequest request;
    request.file = TENON_SOURCE_DIR "/examples/experiments/memory_techniques.toml";
    request.overrides = {"data.path=\"" + (folder / "text").string() + "\""};
    request.overrides.insert(request.overrides.end(), overrides.begin(), overrides.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request);
  }

  Row run_row(const Config& config) {
    shutdown();
    const ExperimentConfig experiment = config.experiment();
    install(experiment);
    const ExperimentResult result = run_experiment(experiment, sink);
    const auto peak = [&](Purpose purpose) {
      return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
    };
    const auto figure = [&](std::string_view name) {
      for (const auto& [known, value] : result.figures)
        if (known == name) return value;
      return 0.0;
    };
    return {.activations = peak(Purpose::kActivation),
            .gradients = peak(Purpose::kGradient),
            .state = peak(Purpose::kOptimizerState),
            .total = result.memory.requested_bytes.peak,
            .parameters = result.parameters,
            .expected_activations = figure("expected_activation_bytes"),
            .expected_gradients = figure("expected_gradient_bytes"),
            .expected_state = figure("expected_optimizer_bytes"),
            .expected_total = figure("expected_total_bytes"),
            .casts = peak(Purpose::kCast),
            .expected_casts = figure("expected_cast_bytes"),
            .kernel_workspace = static_cast<double>(peak(Purpose::kWorkspace)),
            .losses = result.losses};
  }
};

void expect_theory(const Rows& rows) {
  ASSERT_FALSE(rows.empty());
  const auto ratio = [](std::int64_t measured, double expected) { return static_cast<double>(measured) / expected; };
  for (const auto& [name, row] : rows) {
    EXPECT_NEAR(ratio(row.activations, row.expected_activations), 1, 0.03) << name;
    EXPECT_NEAR(ratio(row.gradients, row.expected_gradients), 1, 0.03) << name;
    EXPECT_NEAR(ratio(row.state, row.expected_state), 1, 0.03) << name;
    EXPECT_NEAR(static_cast<double>(row.casts), row.expected_casts, 0.03 * row.expected_casts) << name;
    // Processors without products in 16 bits convert panels of operands, and convolutions and products may pack them.
    EXPECT_GT(ratio(row.total, row.expected_total), 0.95) << name;
    EXPECT_LT(ratio(row.total, row.expected_total + row.kernel_workspace), 1.05) << name;
  }
}

/// The share of the first row's activations that this row does without.
double saved(const Rows& rows, const std::string& name) {
  return 1 - static_cast<double>(rows.at(name).activations) / static_cast<double>(rows.at("none of them").activations);
}

// In full size, on addresses alone: peaks are those of the run (Estimate.EqualsTheRunThatDrawsItsParameters…).
TEST_F(MemoryTechniques, EveryRowTakesWhatTheoryExpects) {
  const Rows all = rows(kOnAddresses);
  expect_theory(all);
  EXPECT_GE(all.size(), 25u);
  EXPECT_GE(saved(all, "checkpointing"), 0.60);
  EXPECT_GE(saved(all, "offload"), 0.80);
  EXPECT_NEAR(saved(all, "micro-batches 1/4"), 0.75, 0.01);
  EXPECT_GE(saved(all, "checkpointing to a half"), 0.50);
  EXPECT_GT(saved(all, "in-place activations"), 0);
  EXPECT_GT(saved(all, "checkpointing"), saved(all, "checkpointing keeping attention"));
  EXPECT_GE(saved(all, "checkpointing keeping attention"), 0.60);
  EXPECT_GE(saved(all, "mixed precision"), 0.4) << "the stream and what norms read stay in float32";
  EXPECT_GE(saved(all, "mixed + checkpointing"), 0.75);
}

TEST_F(MemoryTechniques, MixedPrecisionTakesWhatTheoryExpectsWithEverySwitch) {
  const std::vector<std::vector<std::string>> variants = {
      {"model.activation=\"gelu\""},
      {"model.dropout=0.1"},
      {"model.dropout=0.1", "model.activation=\"gelu\""},
      {"model.vocabulary=4000", "train.zero_grad=\"none\""},
      {"model.vocabulary=8000", "train.chunked_loss=8"},
      {"model.tied=false", "model.vocabulary=2000"},
      {"model.layers=3", "train.batch_size=64"},
      {"train.batch_size=4", "train.zero_grad=\"none\""},
      {"train.inplace_activations=true"},
  };
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(variant, " ")));
    std::vector<std::string> words = kOnAddresses;
    words.insert(words.end(), variant.begin(), variant.end());
    expect_theory(rows(
        words, {"mixed precision", "mixed + checkpointing", "mixed + micro-batches", "mixed + optimizer in backward"}));
  }
}

TEST_F(MemoryTechniques, LowRankMatricesTakeWhatTheoryExpectsWithEverySwitch) {
  const std::vector<std::vector<std::string>> variants = {
      {"model.activation=\"gelu\""},
      {"model.dropout=0.1"},
      {"model.dropout=0.1", "model.activation=\"gelu\""},
      {"train.lora_rank=64"},
      {"model.vocabulary=4000", "train.zero_grad=\"none\""},
      {"model.tied=false", "model.vocabulary=2000"},
      {"model.layers=3", "train.batch_size=64"},
      {"train.batch_size=4", "train.zero_grad=\"none\"", "train.optimizer_in_backward=true"},
      {"model.vocabulary=8000", "train.chunked_loss=8", "train.test_batch_size=1"},
      {"train.micro_batches=4"},
      {"train.inplace_activations=true"},
  };
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(variant, " ")));
    std::vector<std::string> words = kOnAddresses;
    words.insert(words.end(), variant.begin(), variant.end());
    expect_theory(
        rows(words, {"low-rank matrices", "low-rank + checkpointing", "low-rank on int8", "low-rank on int4"}));
  }
}

std::vector<std::vector<std::string>> low_rank_variants() {
  return {
      {},
      {"model.activation=\"gelu\""},
      {"model.dropout=0.1", "model.activation=\"gelu\""},
      {"train.lora_rank=64", "model.dropout=0.1"},
      {"model.vocabulary=4000", "train.zero_grad=\"none\""},
      {"model.layers=3", "train.batch_size=64"},
      {"train.batch_size=4", "train.zero_grad=\"none\"", "train.optimizer_in_backward=true"},
      {"model.vocabulary=8000", "train.chunked_loss=8", "train.test_batch_size=1"},
      {"train.micro_batches=4"},
  };
}

TEST_F(MemoryTechniques, LowRankMatricesTakeWhatTheoryExpectsInMixedPrecisionAndBesideSomeLayers) {
  const std::vector<std::vector<std::string>> variants = low_rank_variants();
  for (const char* precision : {"float32", "bfloat16-mixed"}) {
    // "w" is in the names of both layers of the perceptron.
    for (const char* layers : {"", "qkv", "out", "widen", "narrow", "w"}) {
      for (const std::vector<std::string>& variant : variants) {
        if (variant.size() > 1 && (std::string_view(layers) == "out" || std::string_view(layers) == "narrow")) continue;
        SCOPED_TRACE(fmt::format("{} '{}' {}", precision, layers, fmt::join(variant, " ")));
        std::vector<std::string> words = kOnAddresses;
        words.insert(words.end(), variant.begin(), variant.end());
        words.push_back(fmt::format("train.precision=\"{}\"", precision));
        words.push_back(fmt::format("train.lora_layers=\"{}\"", layers));
        expect_theory(rows(words, {"low-rank matrices", "low-rank + checkpointing"}));
      }
    }
  }
}

// A product with integers computes in float32, whatever it reads: conversions of operands and gradients pass.
TEST_F(MemoryTechniques, LowRankMatricesBesideIntegersTakeWhatTheoryExpectsInEveryPrecisionAndBesideSomeLayers) {
  std::vector<std::vector<std::string>> variants = low_rank_variants();
  variants.push_back({"model.hidden=128", "model.heads=4", "model.context=256"});
  const std::vector<std::pair<const char*, const char*>> numbers = {
      {"float32", "int8"},        {"float64", "int8"},        {"bfloat16", "int8"},
      {"bfloat16-mixed", "int8"}, {"bfloat16-mixed", "int4"}, {"float16-mixed", "int4"}};
  for (const auto& [precision, weights] : numbers) {
    for (const char* layers : {"", "qkv", "out", "widen", "narrow", "w"}) {
      for (std::vector<std::string> words : variants) {
        const bool in_backward = std::ranges::find(words, "train.optimizer_in_backward=true") != words.end();
        if (in_backward && std::string_view(precision) == "float16-mixed") continue;  // is refused: the loss is scaled
        SCOPED_TRACE(fmt::format("{} {} '{}' {}", precision, weights, layers, fmt::join(words, " ")));
        words.insert(words.begin(), kOnAddresses.begin(), kOnAddresses.end());
        words.push_back(fmt::format("train.precision=\"{}\"", precision));
        words.push_back(fmt::format("train.lora_weights=\"{}\"", weights));
        words.push_back(fmt::format("train.lora_layers=\"{}\"", layers));
        expect_theory(rows(words, {"low-rank matrices", "low-rank + checkpointing"}));
      }
    }
  }
}

TEST_F(MemoryTechniques, OffloadLeavesOnTheDeviceWhatTheoryExpectsWithEverySwitch) {
  const std::vector<std::vector<std::string>> variants = {
      {"model.activation=\"gelu\""},
      {"model.dropout=0.1"},
      {"model.vocabulary=4000", "train.zero_grad=\"none\""},
      {"model.vocabulary=8000", "train.chunked_loss=8", "train.test_batch_size=1"},
      {"model.layers=12", "train.batch_size=4"},
      {"train.micro_batches=4"},
      {"train.zero_grad=\"none\"", "train.optimizer_in_backward=true"},
      {"train.inplace_activations=true"},
  };
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(variant, " ")));
    std::vector<std::string> words = kOnAddresses;
    words.insert(words.end(), variant.begin(), variant.end());
    expect_theory(rows(words, {"offload", "mixed + offload"}));
  }
}

TEST_F(MemoryTechniques, WhatCheckpointedBlocksKeepIsWhatTheoryExpects) {
  const std::vector<std::vector<std::string>> variants = {
      {"train.checkpoint_blocks=3"},
      {"model.activation=\"gelu\"", "train.zero_grad=\"none\""},
      {"train.precision=\"bfloat16-mixed\""},
      {"train.precision=\"bfloat16-mixed\"", "model.activation=\"gelu\""},
      {"train.checkpoint_keep=\"products,attention\""},
      {"train.micro_batches=4", "model.dropout=0.1"},
  };
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(variant, " ")));
    std::vector<std::string> words = kOnAddresses;
    words.insert(words.end(), variant.begin(), variant.end());
    expect_theory(rows(words, {"checkpointing keeping attention", "checkpointing keeping products"}));
  }
}

// Where next to nothing passes, the largest parameter's gradient stands beside the table's, which comes from the output
// layer and waits for its other half from the lookup.
TEST_F(MemoryTechniques, AnUpdateInBackwardFreesAllButTheLargestGradient) {
  std::vector<std::string> small = kOnAddresses;
  small.insert(small.end(), {"train.batch_size=1", "train.test_batch_size=1", "model.context=16"});
  const Rows all = rows(small, {"set_to_none", "optimizer in backward"});
  constexpr std::int64_t kBytes = 4, kWidth = 384, kSymbols = 95;
  constexpr std::int64_t kLargest = 4 * kWidth * kWidth * kBytes, kTable = kSymbols * kWidth * kBytes;
  constexpr std::int64_t kPassing = 6 * 16 * kWidth * kBytes;
  const Row& row = all.at("optimizer in backward");
  EXPECT_GE(row.gradients, kLargest);
  EXPECT_LE(row.gradients, (kLargest + kTable + kPassing) * 101 / 100);
  EXPECT_GE(all.at("set_to_none").gradients, row.parameters * kBytes);
}

TEST_F(MemoryTechniques, SmallerOnTheCpuMatricesBesideIntegersTakeWhatTheoryExpectsInMixedPrecision) {
  const std::vector<std::string> small = {
      "model.hidden=64",   "model.heads=4",       "model.layers=6",  "model.context=64",
      "train.max_steps=3", "train.batch_size=16", "train.threads=1", "model.activation=\"gelu\""};
  for (const char* layers : {"", "qkv", "widen"}) {
    SCOPED_TRACE(layers);
    std::vector<std::string> words = small;
    words.push_back(fmt::format("train.lora_layers=\"{}\"", layers));
    words.emplace_back("train.precision=\"bfloat16-mixed\"");
    expect_theory(rows(words, {"low-rank on int8", "low-rank on int4"}));
  }
}

TEST_F(MemoryTechniques, SmallerOnTheCpuTheRowsTakeWhatTheoryExpectsAndLoseNothing) {
  const Rows all = rows({"model.hidden=64", "model.heads=4", "model.layers=6", "model.context=64", "train.max_steps=3",
                         "train.batch_size=16", "train.threads=1"});
  expect_theory(all);
  const std::vector<double>& plain = all.at("none of them").losses;
  for (const auto& [name, row] : all) {
    ASSERT_EQ(row.losses.size(), plain.size()) << name;
    if (name.starts_with("low-rank")) {  // other weights learn, and nothing is added to the others' at first
      EXPECT_NEAR(row.losses.front(), plain.front(), 0.01) << name;
      EXPECT_NE(row.losses.back(), plain.back()) << name << ": other parameters were updated";
      continue;
    }
    const double noise = name.starts_with("mixed") || name.starts_with("bfloat16") ? 0.02 : 1e-4;
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(row.losses[i], plain[i], noise) << name;
  }
  for (const char* name : {"offload", "checkpointing keeping attention", "checkpointing keeping products",
                           "checkpointing", "checkpointing of 3 blocks", "checkpointing to a half", "set_to_none",
                           "in-place activations", "optimizer in backward", "checkpointing + set_to_none"})
    EXPECT_TRUE(same_bits(all.at(name).losses, plain)) << name;
}

}  // namespace
}  // namespace tenon::test
