// Budgets of checkpointing where no closed form is known, and in bytes: they choose the fewest blocks that keep to
// them, change no loss, and say what they cannot do.
#include "support/expect_error.h"
#include "train/experiment_fixture.h"

#include <tenon/train/estimate/checkpoint_budget.h>
#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/estimate/searched_settings.h>
#include <tenon/train/model.h>

#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kOn = "train.checkpoint=true";

class CheckpointBudget : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  ExperimentConfig config(const Words& more) const {
    ConfigRequest request;
    request.overrides = {
        "model.name=\"lstm-lm\"", "model.hidden=32",         "model.layers=5",
        "model.context=32",       "data.name=\"text\"",      "data.path=\"" + (folder / "text").string() + "\"",
        "train.batch_size=8",     "train.epochs=2",          "train.max_steps=3",
        "train.threads=1",        "train.test_batch_size=4", "data.test_limit=4"};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  /// As `tenon run` does it.
  ExperimentResult run_searched(const Words& more) {
    shutdown();
    ExperimentConfig searched = config(more);
    check_experiment(searched);
    const auto figures = settle_searched(searched, sink);
    install(searched);
    ExperimentResult result = run_experiment(searched, sink);
    result.figures.insert(result.figures.end(), figures.begin(), figures.end());
    return result;
  }
  std::string mistake(const Words& more) {
    try {
      run_searched(more);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  static double activations(const ExperimentResult& result) {
    return static_cast<double>(result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak);
  }
  static double figure(const ExperimentResult& result, std::string_view name) {
    for (const auto& [known, value] : result.figures)
      if (known == name) return value;
    ADD_FAILURE() << "no figure " << name;
    return -1;
  }
  static std::string blocks(double count) { return "train.checkpoint_blocks=" + std::to_string(std::lround(count)); }
};

TEST_F(CheckpointBudget, OfAShareChoosesTheFewestBlocksWithoutAClosedForm) {
  const std::vector<Words> models = {{"model.name=\"lstm-lm\""},
                                     {"model.name=\"gpt\"", "train.lora_rank=2", "train.lora_layers=\"block0\""},
                                     {"model.name=\"gpt\"", "train.checkpoint_keep=\"gelu,layer_norm\""}};
  for (const Words& model : models) {
    SCOPED_TRACE(model.back());
    const auto with = [&](Words more) {
      more.insert(more.end(), model.begin(), model.end());
      return run_searched(more);
    };
    Words plain = model;
    std::erase_if(plain, [](const std::string& word) { return word.find("keep") != std::string::npos; });
    const ExperimentResult none = run_searched(plain), chosen = with({kOn, "train.checkpoint_budget=0.7"});
    EXPECT_TRUE(same_bits(none.losses, chosen.losses));
    const double count = figure(chosen, "checkpointed_blocks");
    ASSERT_GT(count, 0);
    EXPECT_LE(activations(chosen), 0.7 * activations(none));
    const double fewer = count == 1 ? activations(none) : activations(with({kOn, blocks(count - 1)}));
    EXPECT_GT(fewer, 0.7 * activations(none));
    EXPECT_GE(figure(chosen, "checkpoint_probes"), 2);
  }
}

TEST_F(CheckpointBudget, OfBytesIsHeldAgainstWhatTheRunReserves) {
  const Words device = {"allocator.name=\"direct\""};  // which reserves what is asked for
  const auto with = [&](Words more) {
    more.insert(more.end(), device.begin(), device.end());
    return run_searched(more);
  };
  const auto reserved = [](const ExperimentResult& result) { return result.memory.reserved_bytes.peak; };
  const ExperimentResult none = with({}), all = with({kOn});
  ASSERT_LT(reserved(all), reserved(none));
  const std::int64_t budget = (reserved(all) + reserved(none)) / 2;
  const ExperimentResult chosen = with({kOn, "train.checkpoint_memory=" + std::to_string(budget)});
  EXPECT_TRUE(same_bits(none.losses, chosen.losses));
  const double count = figure(chosen, "checkpointed_blocks");
  EXPECT_GT(count, 0);
  EXPECT_LT(count, figure(all, "checkpointed_blocks"));
  EXPECT_LE(reserved(chosen), budget);
  EXPECT_GT(reserved(count == 1 ? none : with({kOn, blocks(count - 1)})), budget);
}

TEST_F(CheckpointBudget, ThatIsLargeEnoughLeavesEverythingKept) {
  const ExperimentResult none = run_searched({}), chosen = run_searched({kOn, "train.checkpoint_memory=\"1GiB\""});
  EXPECT_EQ(figure(chosen, "checkpointed_blocks"), 0);
  EXPECT_EQ(activations(chosen), activations(none));
}

TEST_F(CheckpointBudget, IsKeptByEstimatesToo) {
  const Words budget = {kOn, "train.checkpoint_budget=0.7"};
  const auto peak = [](const MemoryStats& memory) {
    return memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak;
  };
  shutdown();
  const MemoryEstimate estimate = estimate_memory(config(budget));
  EXPECT_EQ(peak(estimate.memory), peak(run_searched(budget).memory));
}

TEST_F(CheckpointBudget, ThatCannotBeKeptIsRefusedWithTheNumbers) {
  EXPECT_THAT(mistake({kOn, "train.checkpoint_budget=0.01"}),
              AllOf(HasSubstr("train.checkpoint_budget"), HasSubstr("where all 5 blocks run again")));
  EXPECT_THAT(mistake({kOn, "train.checkpoint_memory=4096"}),
              AllOf(HasSubstr("train.checkpoint_memory"), HasSubstr("where all 5 blocks run again the run still"),
                    HasSubstr("raise it from 4.00 KiB")));
  EXPECT_THAT(mistake({"train.checkpoint_memory=4096"}), HasSubstr("train.checkpoint is off"));
  EXPECT_THAT(mistake({kOn, "train.checkpoint_memory=4096", "train.checkpoint_budget=0.5"}),
              AllOf(HasSubstr("train.checkpoint_budget says already"), HasSubstr("leave one out")));
  EXPECT_THAT(mistake({kOn, "train.checkpoint_memory=4096", "train.batch_size=\"auto\"", "allocator.layers=[\"limit\"]",
                       "allocator.limit.bytes=\"64MiB\""}),
              HasSubstr("say the batch"));
}

TEST_F(CheckpointBudget, ThatNobodyHasSettledIsRefusedByARun) {
  shutdown();
  const ExperimentConfig open = config({kOn, "train.checkpoint_memory=\"1MiB\""});
  install(open);
  expect_error([&] { run_experiment(open, sink); }, "settle_searched() says which blocks keep to it");
}

// Not even the data are read.
TEST_F(CheckpointBudget, OfAShareIsSettledWithoutARunWhereAClosedFormIsKnown) {
  const Words nothing_to_read = {"model.name=\"gpt\"", "data.path=\"" + (folder / "no such file").string() + "\"",
                                 "train.checkpoint=true", "train.checkpoint_budget=0.6"};
  ExperimentConfig known = config(nothing_to_read);
  EXPECT_FALSE(with_checkpoint_blocks(known, sink));
  Words low_rank = nothing_to_read;
  low_rank.insert(low_rank.end(), {"train.lora_rank=2", "train.precision=\"bfloat16-mixed\""});
  ExperimentConfig known_too = config(low_rank);
  EXPECT_FALSE(with_checkpoint_blocks(known_too, sink));
  low_rank.emplace_back("train.lora_weights=\"int4\"");
  ExperimentConfig known_of_integers = config(low_rank);
  EXPECT_FALSE(with_checkpoint_blocks(known_of_integers, sink));
  Words measured = nothing_to_read;
  measured[0] = "model.name=\"llama\"";
  ExperimentConfig unknown = config(measured);
  EXPECT_THROW(with_checkpoint_blocks(unknown, sink), Error);
}

TEST_F(CheckpointBudget, TheModelsWithAClosedFormAreThoseThatSaySo) {
  for (const std::string& name : train::model_names()) {
    const ExperimentConfig experiment =
        config({"model.name=\"" + name + "\"", "model.multipliers=\"1,2\"", "model.hidden=32", "model.heads=2"});
    const train::DataShape data = train::reads_text(train::task_of(name))
                                      ? train::DataShape{.vocabulary = 30, .context = 16}
                                      : train::DataShape{.height = 32, .width = 32};
    const train::Model model = train::make_model({.options = experiment.section("model"), .data = data});
    EXPECT_EQ(model.activations.blocks > 0, train::has_closed_form(name)) << name;
  }
}

}  // namespace
}  // namespace tenon::test
