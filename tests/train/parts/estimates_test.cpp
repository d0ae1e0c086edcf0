// What an estimate says of each device, how a run would end under its ceilings, and how few blocks a budget makes run
// again: small ones, to the byte, of an allocator that neither rounds nor caches.
#include "../../support/message_of.h"
#include "train/experiment_fixture.h"

#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/estimate/checkpoint_budget.h>
#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/estimate/searched_settings.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Words = std::vector<std::string>;

class SmallEstimates : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }
  ExperimentConfig config(const Words& more) const {
    shutdown();
    ConfigRequest request;
    request.overrides = {"model.hidden=32",
                         "model.layers=4",
                         "data.path=\"" + folder.string() + "\"",
                         "data.limit=64",
                         "data.test_limit=4",
                         "train.batch_size=16",
                         "train.test_batch_size=4",
                         "train.threads=1",
                         "allocator.name=\"direct\"",
                         "device.name=\"simulated:0\"",
                         "device.simulated.mode=\"address-only\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  ExperimentConfig gpt(Words more) const {
    Words words = {"model.name=gpt", "model.heads=2", "model.context=8", "data.name=text",
                   "data.path=\"" + (folder / "text").string() + "\""};
    words.insert(words.end(), more.begin(), more.end());
    return config(words);
  }
  MemoryEstimate estimated(const Words& more) const { return estimate_memory(config(more)); }
};

TEST_F(SmallEstimates, OfOneDeviceHaveItsPeaksAndItsName) {
  for (const char* device : {"simulated:0", "cpu"}) {
    const MemoryEstimate estimate = estimated({fmt::format("device.name=\"{}\"", device)});
    EXPECT_TRUE(open_devices().empty());
    ASSERT_EQ(estimate.devices.size(), 1U);
    const DeviceEstimate& one = estimate.devices[0];
    EXPECT_THAT(one.device, HasSubstr(device));
    EXPECT_EQ(one.layers, "");
    EXPECT_EQ(one.requested_bytes, estimate.memory.requested_bytes.peak);
    EXPECT_EQ(one.allocated_bytes, estimate.memory.allocated_bytes.peak);
    EXPECT_EQ(one.reserved_bytes, estimate.memory.reserved_bytes.peak);
    const std::int64_t parameters = 784 * 32 + 32 + 3 * (32 * 32 + 32) + 32 * 10 + 10;
    EXPECT_EQ(estimate.parameters, parameters);
    EXPECT_EQ(one.parameters.bytes, 4 * parameters);
    EXPECT_EQ(one.of(Purpose::kParameter), 4 * parameters);
    EXPECT_EQ(one.of(Purpose::kOptimizerState), 8 * parameters);
    for (std::size_t i = 0; i < kPurposeCount; ++i)
      EXPECT_EQ(one.requested_by_purpose[i], estimate.memory.requested_by_purpose[i].peak) << i;
    EXPECT_EQ(estimate.batch_size, 0) << "a number is set";
  }
}

TEST_F(SmallEstimates, OfStagesNameTheirLayers) {
  const MemoryEstimate estimate =
      estimate_memory(gpt({"device.names=[\"simulated:0\", \"simulated:1\"]", "device.simulated.count=2",
                           "train.parallel=pipeline", "train.micro_batches=2", "train.pipeline_balance=\"1,6\""}));
  ASSERT_EQ(estimate.devices.size(), 2U);
  EXPECT_EQ(estimate.devices[0].device, "simulated:0");
  EXPECT_EQ(estimate.devices[0].layers, "symbols");
  EXPECT_EQ(estimate.devices[1].device, "simulated:1");
  EXPECT_EQ(estimate.devices[1].layers, "block0 to head");
  EXPECT_GT(estimate.devices[1].parameters.bytes, estimate.devices[0].parameters.bytes);
  EXPECT_GT(estimate.devices[1].requested_bytes, estimate.devices[1].of(Purpose::kParameter));
  EXPECT_GT(estimate.devices[1].reserved_bytes, 0);
}

TEST_F(SmallEstimates, LeaveOutTheCeilingsThatTheyAreHeldAgainst) {
  const MemoryEstimate plain = estimated({});
  const MemoryEstimate limited = estimated({"allocator.layers=[\"limit\"]", "allocator.limit.bytes=1024"});
  EXPECT_EQ(limited.memory.reserved_bytes.peak, plain.memory.reserved_bytes.peak);
  EXPECT_EQ(estimated({"device.simulated.capacity=\"4096B\""}).memory.reserved_bytes.peak,
            plain.memory.reserved_bytes.peak);
}

TEST_F(SmallEstimates, SayWhichCeilingEndsTheRunAndWhichDoesNot) {
  const std::int64_t needed = estimated({}).memory.reserved_bytes.peak;
  const auto ends = [&](const Words& words) { return estimate_shortage(config(words)); };
  EXPECT_FALSE(ends({})) << "there is none";
  EXPECT_FALSE(ends({fmt::format("device.simulated.capacity={}", needed)}));
  const auto short_of = ends({fmt::format("device.simulated.capacity={}", needed - 1)});
  ASSERT_TRUE(short_of);
  EXPECT_EQ(short_of->capacity_bytes, static_cast<std::size_t>(needed - 1));
  EXPECT_EQ(short_of->device, "simulated:0");
  EXPECT_FALSE(ends({"allocator.layers=[\"limit\"]", fmt::format("allocator.limit.bytes={}", needed)}));
  const auto limited = ends(
      {"device.name=\"cpu\"", "allocator.layers=[\"limit\"]", fmt::format("allocator.limit.bytes={}", needed / 2)});
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->limit_bytes, static_cast<std::size_t>(needed / 2));
  EXPECT_THAT(limited->device, HasSubstr("cpu")) << "not the one that stood in for it";
}

TEST_F(SmallEstimates, FitWhereTheRunComesToItsEnd) {
  const std::int64_t needed = estimated({}).memory.reserved_bytes.peak;
  EXPECT_TRUE(estimate_fits(config({})));
  EXPECT_TRUE(estimate_fits(config({fmt::format("device.simulated.capacity={}", needed)})));
  EXPECT_FALSE(estimate_fits(config({fmt::format("device.simulated.capacity={}", needed - 1)})));
  EXPECT_TRUE(open_devices().empty());
}

TEST_F(SmallEstimates, OfOneOfSeveralRanksAreOfItsPartOfTheBatch) {
  const auto activations = [&](const train::PlannedRank& rank) {
    const MemoryEstimate estimate = estimate_memory(config({"train.batch_size=48"}), rank);
    return estimate.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak;
  };
  const std::int64_t all = activations({}), half = activations({.rank = 0, .size = 2}),
                     third = activations({.rank = 2, .size = 3});
  EXPECT_NEAR(static_cast<double>(half) / static_cast<double>(all), 0.5, 0.02);
  EXPECT_NEAR(static_cast<double>(third) / static_cast<double>(all), 1 / 3.0, 0.02);
}

TEST_F(SmallEstimates, LeaveTheOptionsOfTheKindThatStandsInAsTheyWere) {
  const ExperimentConfig on_host = config({"device.name=\"cpu\""});
  const auto before = backend_options("simulated").entries(false);
  estimate_memory(on_host);
  EXPECT_EQ(backend_options("simulated").entries(false), before);
}

TEST_F(SmallEstimates, AreRefusedWhatTheDeviceItselfIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] {
                estimated({"device.name=\"cpu\"", "train.offload=activations"});
              }),
              HasSubstr("train.offload: the memory of the device cpu is host memory"));
}

TEST_F(SmallEstimates, OfServingAreOfAllRequests) {
  const MemoryEstimate estimate =
      estimate_memory(gpt({"serve.requests=3", "serve.arrivals=1e6", "serve.prompt_min=2", "serve.prompt_max=2",
                           "serve.output_min=6", "serve.output_max=6", "serve.cache=contiguous"}));
  EXPECT_EQ(estimate.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kKvCache)].peak,
            3 * 8 * 2 * 4 * 32 * 4)
      << "contexts of 8 positions, keys and values of 32 floats in 4 layers";
}

/// The fewest blocks of a recurrent model of four that leave so much, found by asking every number of them.
class SmallBudgets : public SmallEstimates {
 protected:
  void SetUp() override {
    SmallEstimates::SetUp();
    wide = {"model.name=lstm-lm",  "model.hidden=16",
            "model.context=16",    "train.batch_size=16",
            "train.optimizer=sgd", "train.momentum=0.0",
            "data.name=text",      "data.path=\"" + (folder / "text").string() + "\""};
  }
  Words with_blocks(std::int64_t blocks) const {
    if (blocks == 0) return {};
    return {"train.checkpoint=true", fmt::format("train.checkpoint_blocks={}", blocks)};
  }
  std::int64_t reserved(std::int64_t blocks) const {
    Words words = with_blocks(blocks);
    words.insert(words.end(), wide.begin(), wide.end());
    return estimated(words).memory.reserved_bytes.peak;
  }
  std::optional<CheckpointChoice> choose(const std::string& budget, ExperimentConfig* settled = nullptr) {
    Words words = {"train.checkpoint=true", budget};
    words.insert(words.end(), wide.begin(), wide.end());
    ExperimentConfig searched = config(words);
    sink.notes.clear();
    const std::optional<CheckpointChoice> choice = with_checkpoint_blocks(searched, sink);
    if (settled != nullptr) *settled = searched;
    return choice;
  }
  Words wide;
};

TEST_F(SmallBudgets, OfBytesAreKeptByTheFewestBlocks) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t blocks = 0; blocks <= 4; ++blocks) bytes.push_back(reserved(blocks));
  const std::int64_t least = *std::ranges::min_element(bytes);
  ASSERT_LT(bytes[4], bytes[0]);
  for (const std::int64_t budget : {bytes[0], bytes[0] - 1, (bytes[0] + bytes[4]) / 2, bytes[4]}) {
    std::int64_t fewest = 0;
    while (bytes[static_cast<std::size_t>(fewest)] > budget) ++fewest;
    ExperimentConfig settled = config({});
    const auto choice = choose(fmt::format("train.checkpoint_memory={}", budget), &settled);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->blocks, fewest) << budget;
    EXPECT_EQ(choice->of, 4);
    EXPECT_EQ(choice->peak_bytes, bytes[static_cast<std::size_t>(fewest)]);
    EXPECT_LE(choice->probes, 4) << "all, none, and halves";
    const Options& train = settled.section("train");
    EXPECT_EQ(train.boolean("checkpoint"), fewest > 0);
    EXPECT_EQ(train.integer("checkpoint_blocks"), fewest);
    EXPECT_EQ(train.size("checkpoint_memory"), 0U) << "it is settled";
    EXPECT_THAT(sink.notes.at(0),
                MatchesRegex(fmt::format("the first {} of 4 blocks run again in backward: .*iB; found by {} runs on "
                                         "addresses alone in .* s",
                                         fewest, choice->probes)));
  }
  EXPECT_THAT(message_of<ConfigError>([&] { choose(fmt::format("train.checkpoint_memory={}", least / 2)); }),
              HasSubstr("train.checkpoint_memory: where all 4 blocks run again the run still reserves "));
}

TEST_F(SmallBudgets, OfAShareAreOfTheActivations) {
  const auto activations = [&](std::int64_t blocks) {
    Words words = with_blocks(blocks);
    words.insert(words.end(), wide.begin(), wide.end());
    return estimated(words).memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak;
  };
  const auto plain = static_cast<double>(activations(0)), all = static_cast<double>(activations(4));
  ASSERT_LT(all, plain);
  for (const double share : {0.999, (plain + all) / 2 / plain, all / plain + 1e-9}) {
    std::int64_t fewest = 0;
    while (static_cast<double>(activations(fewest)) > share * plain) ++fewest;
    const auto choice = choose(fmt::format("train.checkpoint_budget={:.12f}", share));
    ASSERT_TRUE(choice) << share;
    EXPECT_EQ(choice->blocks, fewest) << share;
    EXPECT_EQ(choice->peak_bytes, activations(fewest));
  }
  EXPECT_THAT(message_of<ConfigError>([&] { choose(fmt::format("train.checkpoint_budget={:.6f}", all / plain / 2)); }),
              HasSubstr("is less than what is left where all 4 blocks run again, "));
}

TEST_F(SmallBudgets, ThatAreNotThereAreNotSearchedFor) {
  ExperimentConfig plain = config({"train.checkpoint=true"});
  EXPECT_FALSE(with_checkpoint_blocks(plain, sink));
  EXPECT_TRUE(settle_searched(plain, sink).empty());
  EXPECT_TRUE(sink.notes.empty());
  EXPECT_TRUE(plain.section("train").boolean("checkpoint"));
}

TEST(BudgetFigures, SayHowManyRunsAndWhetherNoneRunsAgain) {
  using Figures = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ((CheckpointChoice{.blocks = 2, .of = 4, .probes = 3}).figures(), (Figures{{"checkpoint_probes", 3}}));
  EXPECT_EQ((CheckpointChoice{.blocks = 0, .of = 4, .probes = 2}).figures(),
            (Figures{{"checkpoint_probes", 2}, {"checkpointed_blocks", 0}}));
}

}  // namespace
}  // namespace tenon::test
