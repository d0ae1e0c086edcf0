// train.batch_size = "auto" in short runs: it is the largest of which an estimate says that it has memory, found by few
// of them. LargestBatch has larger ones.
#include "train/experiment_fixture.h"

#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class FilledMemory : public Experiment {
 protected:
  static constexpr std::int64_t kExamples = 40;
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }
  ExperimentConfig config(const Words& more) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"model.name=\"gpt\"",
                         "model.hidden=32",
                         "model.layers=1",
                         "model.context=30",
                         "data.name=\"text\"",
                         "data.path=\"" + (folder / "text").string() + "\"",
                         "data.limit=40",
                         "data.test_limit=2",
                         "train.test_batch_size=2",
                         "train.threads=1",
                         "allocator.name=\"direct\"",
                         "device.name=\"simulated:0\"",
                         "device.simulated.mode=\"address-only\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  /// What each batch reserves at its peak, from 1 on; of too few examples for the parts nothing is known.
  std::vector<std::int64_t> reserved(const Words& words, std::int64_t least) {
    std::vector<std::int64_t> bytes;
    for (std::int64_t n = least; n <= kExamples; ++n) {
      Words own = words;
      own.push_back(fmt::format("train.batch_size={}", n));
      bytes.push_back(estimate_memory(config(own)).memory.reserved_bytes.peak);
    }
    return bytes;
  }
  BatchChoice choose(Words words, std::int64_t capacity) {
    words.emplace_back("train.batch_size=\"auto\"");
    words.push_back(fmt::format("device.simulated.capacity=\"{}B\"", capacity));
    ExperimentConfig found = config(words);
    sink.notes.clear();
    const std::optional<BatchChoice> choice = with_largest_batch(found, sink);
    if (!choice) throw Error("no choice");
    EXPECT_EQ(found.section("train").integer("batch_size"), choice->batch_size);
    return *choice;
  }
  /// For memory that just suffices for some batches, and a byte less.
  void is_the_largest(const Words& words, std::int64_t least, int most_probes) {
    const std::vector<std::int64_t> bytes = reserved(words, least);
    for (const std::size_t place : {std::size_t{4}, bytes.size() / 2, bytes.size() - 3}) {
      for (const std::int64_t capacity : {bytes[place], bytes[place] - 1}) {
        std::int64_t largest = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
          if (bytes[i] <= capacity) largest = least + static_cast<std::int64_t>(i);
        const BatchChoice choice = choose(words, capacity);
        EXPECT_EQ(choice.batch_size, largest) << capacity;
        EXPECT_EQ(choice.predicted, largest);
        EXPECT_EQ(choice.confirmations, 0) << "addresses are all that there is";
        EXPECT_LE(choice.probes, most_probes) << capacity;
        EXPECT_FALSE(choice.has_all_examples);
        EXPECT_THAT(sink.notes.at(0),
                    HasSubstr(fmt::format("batch size {}: the largest for which there is memory; found by {} runs on "
                                          "addresses alone in ",
                                          largest, choice.probes)));
      }
    }
  }
};

TEST_F(FilledMemory, IsByTheLargestBatchThatHasMemory) { is_the_largest({}, 1, 8); }

// Too few examples for recordings of every remainder, so that runs are tried. 19 and 20 take more than 21 and 22, of
// which an epoch has one step.
TEST_F(FilledMemory, InPartsIsByTheLargestBatchThatHasMemory) {
  is_the_largest({"train.micro_batches=2"}, 2, 16);
  const Words words = {"train.micro_batches=2"};
  const std::int64_t of_22 = reserved(words, 22).at(0);
  ASSERT_LT(of_22, reserved(words, 20).at(0));
  EXPECT_EQ(choose(words, of_22).batch_size, 22);
}

TEST_F(FilledMemory, IsByAllExamplesWhereItSuffices) {
  const std::int64_t all = reserved({}, kExamples).at(0);
  const BatchChoice choice = choose({}, all);
  EXPECT_EQ(choice.batch_size, kExamples);
  EXPECT_TRUE(choice.has_all_examples);
  EXPECT_LE(choice.probes, 8);
  EXPECT_THAT(sink.notes.at(0), HasSubstr("batch size 40: all examples fit; found by "));
  const auto figures = choice.figures();
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[0], (std::pair<std::string, double>("auto_batch_size", 40)));
  EXPECT_EQ(figures[1], (std::pair<std::string, double>("auto_batch_predicted", 40)));
  EXPECT_EQ(figures[2], (std::pair<std::string, double>("auto_batch_probes", choice.probes)));
  EXPECT_EQ(figures[3].first, "auto_batch_seconds");
}

TEST_F(FilledMemory, ByNothingIsRefusedWithTheBytes) {
  const std::int64_t one = reserved({}, 1).at(0);
  EXPECT_EQ(choose({}, one).batch_size, 1);
  try {
    choose({}, one - 1);
    FAIL() << "a byte is missing";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().device, "simulated:0");
    EXPECT_EQ(error.info().capacity_bytes, static_cast<std::size_t>(one - 1));
  }
}

// On the device kernels take workspace beside, so that fewer may fit than addresses say.
TEST_F(FilledMemory, OfADeviceThatComputesIsByTheLargestThatRunsThere) {
  const Words words = {"model.name=\"lenet\"", "data.name=\"fashion-mnist\"", "data.path=\"" + folder.string() + "\"",
                       "device.simulated.mode=\"backed\""};
  const std::int64_t capacity = 3 << 20;
  const BatchChoice choice = choose(words, capacity);
  EXPECT_GE(choice.confirmations, 1);
  EXPECT_THAT(sink.notes.at(0), HasSubstr(choice.batch_size == choice.predicted
                                              ? std::string(" on addresses alone and confirmed on the device in ")
                                              : fmt::format(" on addresses alone, which said {}, and {} on the device "
                                                            "in ",
                                                            choice.predicted, choice.confirmations)));
  std::int64_t largest = 0;
  for (std::int64_t n = choice.predicted; n >= 1 && largest == 0; --n) {
    Words own = words;
    own.insert(own.end(),
               {fmt::format("train.batch_size={}", n), fmt::format("device.simulated.capacity=\"{}B\"", capacity),
                "train.max_steps=2", "train.epochs=2"});
    try {
      const ExperimentConfig trial = config(own);
      install(trial);
      run_experiment(trial, sink);
      largest = n;
    } catch (const OutOfMemory&) {
    }
  }
  shutdown();
  EXPECT_EQ(choice.batch_size, largest) << "predicted " << choice.predicted;
  EXPECT_LT(choice.batch_size, kExamples);
}

}  // namespace
}  // namespace tenon::test
