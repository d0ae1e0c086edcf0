// Runs in mixed precision: losses beside those of float32, memory, estimates, and going on after an interruption.
#include "support/expect_error.h"
#include "train/experiment_fixture.h"

#include <tenon/autograd/autocast.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adam.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/step/mixed_precision.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace tenon::test {
namespace {

class MixedPrecision : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 20000);
  }
  std::vector<std::string> lenet() const {
    return {"model.name=\"lenet\"", "train.max_steps=60", "train.epochs=10", "train.lr=1e-3", "data.test_limit=32"};
  }
  std::vector<std::string> gpt() const {
    return {"model.name=\"gpt\"", "data.name=\"text\"",      "data.path=\"" + (folder / "text").string() + "\"",
            "model.hidden=64",    "model.context=32",        "train.max_steps=60",
            "train.epochs=10",    "train.lr=1e-3",           "train.batch_size=16",
            "data.test_limit=32", "train.test_batch_size=32"};
  }
  ExperimentResult run_in(std::vector<std::string> words, const std::string& precision, int seed = 47) {
    words.push_back("train.precision=\"" + precision + "\"");
    words.push_back("train.seed=" + std::to_string(seed));
    return run(words);
  }
  static double distance(const std::vector<double>& a, const std::vector<double>& b) {
    EXPECT_EQ(a.size(), b.size());
    double sum = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::abs(a[i] - b[i]);
    return sum / static_cast<double>(a.size());
  }
  static std::int64_t peak(const ExperimentResult& result, Purpose purpose) {
    return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
};

TEST_F(MixedPrecision, LosesNoMoreThanAnotherSeedWouldChange) {
  for (const auto& words : {lenet(), gpt()}) {
    const std::vector<double> single = run_in(words, "float32").losses;
    const double noise = distance(single, run_in(words, "float32", 48).losses);
    ASSERT_EQ(single.size(), 60U);
    EXPECT_LT(single.back(), 0.8 * single.front()) << "it learns";
    for (const char* precision : {"bfloat16-mixed", "float16-mixed"}) {
      const std::vector<double> mixed = run_in(words, precision).losses;
      EXPECT_GT(distance(single, mixed), 0) << "products are in 16 bits";
      EXPECT_LT(distance(single, mixed), noise) << words[0] << " in " << precision;
    }
  }
}

TEST_F(MixedPrecision, KeepsParametersAndStateInFloat32AndAboutHalfTheActivations) {
  for (const auto& words : {lenet(), gpt()}) {
    std::vector<std::string> few = words;
    few.insert(few.end(), {"train.max_steps=3", "train.batch_size=64"});
    const ExperimentResult single = run_in(few, "float32"), mixed = run_in(few, "bfloat16-mixed");
    EXPECT_EQ(peak(mixed, Purpose::kParameter), peak(single, Purpose::kParameter));
    EXPECT_EQ(peak(mixed, Purpose::kOptimizerState), peak(single, Purpose::kOptimizerState));
    EXPECT_GE(peak(mixed, Purpose::kGradient), 4 * mixed.parameters) << "parameters have theirs in float32";
    EXPECT_LT(peak(mixed, Purpose::kGradient), peak(single, Purpose::kGradient)) << "those of activations have 16 bits";
    const double ratio = static_cast<double>(peak(mixed, Purpose::kActivation)) /
                         static_cast<double>(peak(single, Purpose::kActivation));
    EXPECT_GT(ratio, 0.45) << words[0];
    EXPECT_LT(ratio, 0.75) << words[0];
  }
}

TEST_F(MixedPrecision, IsRefusedOnADeviceWithoutProductsIn16Bits) {
  shutdown();
  load_plugin(TENON_FIXTURE_DIR "/abacus.so");
  for (const char* precision : {"bfloat16-mixed", "float16-mixed"}) {
    EXPECT_THAT(
        [&] {
          run_in({"device.name=\"abacus:0\"", "device.abacus.borrows=false"}, precision);
        },
        ::testing::ThrowsMessage<ConfigError>(::testing::AllOf(::testing::HasSubstr("train.precision"),
                                                               ::testing::HasSubstr("abacus:0 has no products in "))));
  }
}

TEST_F(MixedPrecision, ScalesTheLossInFloat16Only) {
  const auto has_scale = [](const ExperimentResult& result) {
    return std::ranges::any_of(result.figures, [](const auto& figure) { return figure.first == "loss_scale"; });
  };
  std::vector<std::string> few = lenet();
  few.emplace_back("train.max_steps=2");
  EXPECT_TRUE(has_scale(run_in(few, "float16-mixed")));
  EXPECT_FALSE(has_scale(run_in(few, "bfloat16-mixed")));
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
}

TEST_F(MixedPrecision, MastersLearnWhatBfloat16AloneWouldRoundOff) {
  std::vector<std::string> words = gpt();
  words.insert(words.end(), {"train.lr=3e-5", "train.max_steps=200"});
  const std::vector<double> single = run_in(words, "float32").losses, alone = run_in(words, "bfloat16").losses;
  words.emplace_back("train.master_weights=true");
  const std::vector<double> mastered = run_in(words, "bfloat16").losses;
  EXPECT_LT(distance(single, mastered), distance(single, alone) / 2);
  EXPECT_LT(mastered.back(), alone.back());
}

TEST_F(MixedPrecision, MastersAndTheirStatesTakeWhatTheorySays) {
  const auto figure = [](const ExperimentResult& result, std::string_view name) {
    const auto found = std::ranges::find(result.figures, name, &std::pair<std::string, double>::first);
    return found == result.figures.end() ? -1 : found->second;
  };
  for (const char* more : {"train.optimizer=\"adamw\"", "train.optimizer_in_backward=true", "train.zero_grad=\"zero\"",
                           "train.optimizer_states=\"8bit\"", "train.micro_batches=4"}) {
    std::vector<std::string> words = gpt();
    words.insert(words.end(), {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\"",
                               "train.master_weights=true", "train.max_steps=3", "train.test_batch_size=1", more});
    const ExperimentResult result = run_in(words, "bfloat16");
    const auto near = [&](Purpose purpose, const char* name, double within) {
      EXPECT_NEAR(static_cast<double>(peak(result, purpose)) / figure(result, name), 1, within) << name << ", " << more;
    };
    near(Purpose::kOptimizerState, "expected_optimizer_bytes", 0.03);
    near(Purpose::kGradient, "expected_gradient_bytes", 0.03);
    near(Purpose::kActivation, "expected_activation_bytes", 0.03);
    EXPECT_NEAR(static_cast<double>(result.memory.requested_bytes.peak) / figure(result, "expected_total_bytes"), 1,
                0.05)
        << more;
  }
}

TEST_F(MixedPrecision, MastersAreOfParametersIn16Bits) {
  std::vector<std::string> words = lenet();
  words.emplace_back("train.master_weights=true");
  for (const char* precision : {"float32", "bfloat16-mixed"}) {
    expect_error([&] { run_in(words, precision); }, "parameters are their own masters");
  }
}

TEST_F(MixedPrecision, GoesOnToTheLastBit) {
  for (const char* precision : {"bfloat16-mixed", "float16-mixed", "bfloat16"}) {
    std::vector<std::string> words{
        std::string("train.master_weights=") + (std::string_view(precision) == "bfloat16" ? "true" : "false"),
        "model.hidden=8",
        "model.dropout=0.1",
        "data.limit=128",
        "data.test_limit=64",
        "train.epochs=2",
        "train.test_batch_size=32",
        "train.clip_grad_norm=1.0"};
    int asked = 0, stop_at = 0;
    sink.stops = [&] { return ++asked == stop_at; };
    state = {};
    const ExperimentResult whole = run_in(words, precision);
    for (stop_at = 2; stop_at <= 8; stop_at += 3) {
      asked = 0;
      state = {.file = folder / (precision + std::to_string(stop_at)), .go_on = false};
      ASSERT_TRUE(run_in(words, precision).interrupted);
      state.go_on = true;
      asked = 1000;
      const ExperimentResult resumed = run_in(words, precision);
      EXPECT_EQ(whole.losses, resumed.losses) << precision << ", interrupted at " << stop_at;
      EXPECT_EQ(whole.figures, resumed.figures) << "the scale of the loss";
    }
    stop_at = 0;
  }
}

TEST_F(MixedPrecision, AScaleComesBackOnlyFromARunThatHadOne) {
  std::vector<std::string> words{"model.hidden=8", "train.max_steps=4", "train.stop_at=2", "data.test_limit=32"};
  words.push_back("train.save=\"" + (folder / "kept").string() + "\"");
  run_in(words, "bfloat16-mixed");
  words.back() = "train.resume=\"" + (folder / "kept").string() + "\"";
  words[2] = "train.stop_at=4";
  expect_error([&] { run_in(words, "float16-mixed"); }, "this one has float32 with a scaled loss");
}

// Behind addresses there are zeros to read, which are no infinities that a step would be left out for.
TEST_F(MixedPrecision, AScaledLossIsEstimatedWithTheOptimisersState) {
  std::vector<std::string> words = lenet();
  words.insert(words.end(),
               {"train.max_steps=2", "device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""});
  const ExperimentResult scaled = run_in(words, "float16-mixed"), plain = run_in(words, "bfloat16-mixed");
  EXPECT_GT(peak(plain, Purpose::kOptimizerState), 0);
  EXPECT_EQ(peak(scaled, Purpose::kOptimizerState), peak(plain, Purpose::kOptimizerState));
}

TEST_F(MixedPrecision, IsEstimatedByTheListsOfTheRealDevice) {
  for (const auto& words : {lenet(), gpt()}) {
    std::vector<std::string> few = words;
    few.insert(few.end(),
               {"train.max_steps=2", "train.precision=\"bfloat16-mixed\"", "train.test_batch_size=32",
                "data.path=\"" + (words[1] == "data.name=\"text\"" ? folder / "text" : folder).string() + "\"",
                "train.threads=1"});
    ConfigRequest request;
    request.overrides = few;
    request.use_environment = false;
    request.sections = training_sections();
    shutdown();
    const MemoryEstimate estimated = estimate_memory(Config::load(request).experiment());
    EXPECT_TRUE(autocast::has_accelerator_lists(kSimulated));
    few.emplace_back("train.batch_size=128");
    if (words[1] == "data.name=\"text\"") few.back() = "train.batch_size=16";
    const ExperimentResult measured = run(few);
    for (const Purpose purpose : {Purpose::kParameter, Purpose::kOptimizerState, Purpose::kActivation}) {
      EXPECT_EQ(estimated.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak, peak(measured, purpose))
          << words[0] << ": " << name_of(purpose);
    }
  }
}

// Two steps that both overflow would leave out the optimiser's state, which a search for the largest batch is about.
TEST_F(MixedPrecision, NeverSkipsAnUpdateWhereItsMemoryIsWhatIsAskedFor) {
  for (const bool never : {false, true}) {
    train::MixedPrecision precision({.parameters = Dtype::kFloat32, .autocast = Dtype::kFloat16}, kCPU);
    if (never) precision.never_skip();
    const Tensor parameter = tenon::ones({4}).set_requires_grad(true);
    optim::AdamW optimizer({parameter}, optim::AdamWOptions(1e-3));
    precision.begin_step();
    precision.backward((parameter * 1e37).sum() * 1e3);
    precision.step(optimizer);
    EXPECT_EQ(optimizer.state().empty(), !never);
  }
}

}  // namespace
}  // namespace tenon::test
