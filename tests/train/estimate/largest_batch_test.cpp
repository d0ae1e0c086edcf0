// train.batch_size = "auto": it finds what trying every batch finds, in few runs, and says what it cannot do.
#include "train/experiment_fixture.h"

#include <tenon/core/units.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/estimate/batch_search.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// Of `most` examples each takes `each` bytes beside `fixed`, rounded up to `page`, of `ceiling`.
struct Memory {
  std::int64_t fixed, each, page, ceiling, most;

  std::int64_t bytes(std::int64_t n) const { return fixed + n * each; }
  bool fits(std::int64_t n) const { return (bytes(n) + page - 1) / page * page <= ceiling; }
  std::int64_t largest() const {
    std::int64_t n = 1;
    while (n < most && fits(n + 1)) ++n;
    return n;
  }
};

TEST(BatchSearch, FindsTheLastThatFitsInFewTrials) {
  std::mt19937 random(47);
  const auto upto = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  for (int round = 0; round < 500; ++round) {
    Memory memory{
        .fixed = upto(1 << 20), .each = 1 + upto(1 << 12), .page = 1 + upto(1 << 14), .ceiling = 0, .most = 0};
    memory.ceiling = memory.fixed + memory.each + memory.page + upto(1 << 23);
    memory.most = 1 + upto(5000);
    for (const bool is_known : {false, true}) {
      int trials = 0;
      const train::BatchProbe probe = [&](std::int64_t n, std::int64_t& ceiling) -> std::optional<std::int64_t> {
        ++trials;
        EXPECT_LE(n, memory.most);
        if (memory.fits(n)) return memory.bytes(n);
        ceiling = memory.ceiling;
        return std::nullopt;
      };
      const std::int64_t found =
          train::largest_fitting({1, memory.bytes(1)}, memory.most, is_known ? memory.ceiling : 0, probe);
      EXPECT_EQ(found, memory.largest()) << "round " << round;
      EXPECT_LE(trials, 18 + memory.page / memory.each) << "round " << round << " of 5000 at most";
    }
  }
}

// What an allocator takes may shrink by an example: 930 of them fit, 850 to 929 do not.
TEST(BatchSearch, FindsALargerOneBehindSomeThatDoNotFit) {
  int trials = 0;
  const train::BatchProbe probe = [&](std::int64_t n, std::int64_t& ceiling) -> std::optional<std::int64_t> {
    ++trials;
    ceiling = 950'000;
    if (n > 930 || (n >= 850 && n < 930)) return std::nullopt;
    return 1000 * n;
  };
  EXPECT_EQ(train::largest_fitting({1, 1000}, 5000, 950'000, probe), 930);
  EXPECT_LE(trials, 75);
}

// The gap may be wide: 1680 to 1687 fit, 1568 to 1679 do not, and the line ends at 1750.
TEST(BatchSearch, FindsTheLargestHoweverWideTheGapBelowIt) {
  const train::BatchProbe probe = [&](std::int64_t n, std::int64_t& ceiling) -> std::optional<std::int64_t> {
    ceiling = 1'750'000;
    if (n > 1687 || (n > 1567 && n < 1680)) return std::nullopt;
    return 1000 * n;
  };
  EXPECT_EQ(train::largest_fitting({1, 1000}, 5000, 1'750'000, probe), 1687);
}

TEST(BatchSearch, GoesDownToTheFirstAndSaysThatNoneFits) {
  for (const std::int64_t last : {0, 1, 2, 63, 97, 99}) {
    int trials = 0;
    EXPECT_EQ(train::largest_below(1, 100,
                                   [&](std::int64_t n) {
                                     ++trials;
                                     EXPECT_LT(n, 100);
                                     EXPECT_GE(n, 1);
                                     return n <= last;
                                   }),
              last);
    EXPECT_LE(trials, 12);
  }
}

class LargestBatch : public Experiment {
 protected:
  ExperimentConfig config(Words more) {
    Words words{"data.path=\"" + folder.string() + "\"",
                "train.batch_size=\"auto\"",
                "train.threads=1",
                "train.test_batch_size=10",
                "data.test_limit=10",
                "device.name=\"simulated:0\""};
    words.insert(words.end(), more.begin(), more.end());
    ConfigRequest request;
    request.overrides = std::move(words);
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  BatchChoice choose(const Words& more) {
    ExperimentConfig changed = config(more);
    shutdown();
    const std::optional<BatchChoice> choice = with_largest_batch(changed, sink, state);
    if (!choice) throw Error("no choice");
    EXPECT_EQ(changed.section("train").integer("batch_size"), choice->batch_size);
    return *choice;
  }
  bool fits(Words words, std::int64_t n) {
    words.push_back("train.batch_size=" + std::to_string(n));
    return estimate_fits(config(std::move(words)));
  }
  /// By trying every number from `least` to `most`; 0: none fits.
  std::int64_t largest_of_all(const Words& words, std::int64_t least, std::int64_t most) {
    std::int64_t largest = 0;
    for (std::int64_t n = least; n <= most; ++n)
      if (fits(words, n)) largest = n;
    return largest;
  }
  std::string mistake(const Words& more) {
    try {
      ExperimentConfig changed = config(more);
      check_experiment(changed);
      with_largest_batch(changed, sink, state);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(LargestBatch, IsWhatTryingEveryOneFinds) {
  for (const char* model : {"mlp", "lenet"}) {
    for (const char* allocator : {"direct", "caching", "expandable"}) {
      const Words words{"model.name=\"" + std::string(model) + "\"",
                        "allocator.name=\"" + std::string(allocator) + "\"", "device.simulated.mode=\"address-only\"",
                        "device.simulated.capacity=\"12MiB\""};
      const BatchChoice choice = choose(words);
      EXPECT_EQ(choice.batch_size, largest_of_all(words, 1, 640)) << model << " under " << allocator;
      EXPECT_EQ(choice.confirmations, 0) << "addresses are all that there is";
      EXPECT_LE(choice.probes, 8) << "batches are tried by their calls alone";
    }
  }
}

// Sizes are rounded in steps, so that a cached block may suit a larger batch and no smaller one.
TEST_F(LargestBatch, MayLieBehindSomeThatDoNotFit) {
  const Words words{"model.name=\"lenet\"", "allocator.name=\"caching\"", "device.simulated.mode=\"address-only\"",
                    "device.simulated.capacity=\"32MiB\""};
  const BatchChoice choice = choose(words);
  int gaps = 0;
  for (std::int64_t n = 1; n < choice.batch_size; ++n) gaps += fits(words, n) ? 0 : 1;
  EXPECT_GT(gaps, 0) << "a search by halves might have ended there";
  EXPECT_TRUE(fits(words, choice.batch_size));
  for (std::int64_t n = choice.batch_size + 1; n <= choice.batch_size + 40; ++n) EXPECT_FALSE(fits(words, n)) << n;
}

// Parts of a batch differ by an example, and so do the positions of chunks.
TEST_F(LargestBatch, IsWhatTryingEveryOneFindsInPartsAndChunksToo) {
  const std::string file = (folder / "text").string();
  write_letters(file, 4000);
  const Words gpt{"model.name=\"gpt\"",
                  "model.hidden=32",
                  "model.layers=2",
                  "model.context=30",
                  "data.name=\"text\"",
                  "data.limit=120",
                  "data.test_limit=2",
                  "train.test_batch_size=2",
                  "model.vocabulary=300",
                  "data.path=\"" + file + "\"",
                  "device.simulated.capacity=\"6MiB\""};
  const Words lenet{"model.name=\"lenet\"", "data.limit=200", "device.simulated.capacity=\"4MiB\""};
  struct Subject {
    const Words& model;
    const char* technique;
    std::int64_t least;
  };
  for (const Subject& subject : {Subject{lenet, "train.micro_batches=3", 3}, Subject{lenet, "train.micro_batches=2", 2},
                                 Subject{gpt, "train.chunked_loss=4", 1}, Subject{gpt, "train.micro_batches=2", 2}}) {
    for (const char* allocator : {"direct", "caching", "mortise"}) {
      Words words = subject.model;
      words.insert(words.end(), {subject.technique, "allocator.name=\"" + std::string(allocator) + "\"",
                                 "device.simulated.mode=\"address-only\""});
      const BatchChoice choice = choose(words);
      const std::int64_t most = &subject.model == &gpt ? 119 : 200;
      const std::int64_t largest = largest_of_all(words, subject.least, most);
      EXPECT_EQ(choice.batch_size, largest) << words[0] << ' ' << subject.technique << " under " << allocator;
      EXPECT_LT(largest, most) << "memory is what limits it";
      EXPECT_LE(choice.probes, most / 10) << words[0] << ' ' << subject.technique;
    }
  }
}

TEST_F(LargestBatch, IsFoundByRunsWherePartsAreTooManyForRecordings) {
  const Words words{"model.name=\"lenet\"", "device.simulated.mode=\"address-only\"", "data.limit=200",
                    "device.simulated.capacity=\"4MiB\"", "train.micro_batches=30"};
  const BatchChoice choice = choose(words);
  EXPECT_EQ(choice.batch_size, largest_of_all(words, 30, 200));
}

class LongRuns : public LargestBatch {
 protected:
  void SetUp() override {
    LargestBatch::SetUp();
    write_letters(folder / "text", 40000);
  }
  ExperimentConfig gpt(const std::string& allocator, const std::string& precision, int kib, int steps) {
    return config({"model.name=\"gpt\"", "model.hidden=96", "model.layers=4", "model.context=32",
                   "model.vocabulary=300", "data.name=\"text\"", "data.path=\"" + (folder / "text").string() + "\"",
                   "data.limit=1200", "data.test_limit=4", "train.test_batch_size=4",
                   "train.precision=\"" + precision + "\"", "train.optimizer=\"adamw\"",
                   "train.max_steps=" + std::to_string(steps), "train.epochs=300",
                   "allocator.name=\"" + allocator + "\"", "device.simulated.mode=\"address-only\"",
                   "device.simulated.capacity=\"" + std::to_string(kib) + "KiB\""});
  }
  /// With the batch that "auto" finds: empty, or what died.
  std::string death(const std::string& allocator, int kib, int steps) {
    ExperimentConfig changed = gpt(allocator, "bfloat16-mixed", kib, steps);
    shutdown();
    const std::optional<BatchChoice> choice = with_largest_batch(changed, sink, state);
    if (!choice) return "no choice";
    install(changed);
    try {
      run_experiment(changed, sink);
    } catch (const OutOfMemory&) {
      return std::to_string(kib) + "KiB under " + allocator + ", batch " + std::to_string(choice->batch_size);
    }
    return {};
  }
};

// What is reserved grows over some steps: blocks that one step leaves split do not suit the next one.
TEST_F(LongRuns, ComeToTheirEndUnderEveryCapacity) {
  for (const char* allocator : {"caching", "mortise"})
    for (int tenths = 150; tenths < 470; tenths += 10) EXPECT_EQ(death(allocator, tenths * 1024 / 10, 120), "");
}

// A step that is served for long as it was before is not served so for ever: at 24 MiB 32 examples had memory for 189
// steps, and not for the next one.
TEST_F(LongRuns, ComeToTheirEndWhereAHundredStepsWereServedAlike) {
  for (const int kib : {24576, 25088, 25600}) EXPECT_EQ(death("mortise", kib, 600), "");
}

// Where an allocator still moves pages about after many steps, nothing is wrong: a batch that has memory for all of
// them fits. (It was 1 of 30 examples here.)
TEST_F(LongRuns, HaveTheBatchOfShortOnesWhereMemoryNeverSettles) {
  for (const int mib : {30, 60}) {
    std::int64_t found[2];
    for (const int steps : {4, 600}) {
      ExperimentConfig changed = gpt("mortise", "float32", mib * 1024, steps);
      shutdown();
      found[steps == 600] = with_largest_batch(changed, sink, state)->batch_size;
    }
    EXPECT_GE(found[1], 9 * found[0] / 10) << mib << " MiB";
    EXPECT_LE(found[1], found[0]);
  }
}

// On the device kernels ask for workspace, and under caching fitting is not monotone there either.
TEST_F(LargestBatch, OnADeviceThatComputesIsWhatTryingEveryOneThereFinds) {
  for (const char* allocator : {"direct", "caching"}) {
    const Words words{"model.name=\"lenet\"", "device.simulated.capacity=\"6MiB\"", "data.limit=200",
                      "allocator.name=\"" + std::string(allocator) + "\""};
    const BatchChoice choice = choose(words);
    std::int64_t largest = 0;
    for (std::int64_t n = choice.predicted; n >= 1 && largest == 0; --n) {
      Words with_number = words;
      with_number.insert(with_number.end(),
                         {"train.batch_size=" + std::to_string(n), "train.max_steps=2", "train.epochs=2"});
      try {
        const ExperimentConfig trial = config(with_number);
        install(trial);
        run_experiment(trial, sink);
        largest = n;
      } catch (const OutOfMemory&) {
      }
      shutdown();
    }
    EXPECT_EQ(choice.batch_size, largest) << allocator << ", predicted " << choice.predicted;
  }
}

TEST_F(LargestBatch, IsConfirmedOnADeviceThatComputesAndThenTrains) {
  ExperimentConfig changed = config({"model.name=\"lenet\"", "device.simulated.capacity=\"16MiB\"", "train.epochs=2"});
  const std::optional<BatchChoice> choice = with_largest_batch(changed, sink);
  ASSERT_TRUE(choice);
  EXPECT_GE(choice->confirmations, 1);
  EXPECT_LE(choice->batch_size, choice->predicted);
  ASSERT_EQ(sink.notes.size(), 1u);
  EXPECT_THAT(sink.notes[0], HasSubstr("batch size " + std::to_string(choice->batch_size)));
  install(changed);
  const ExperimentResult result = run_experiment(changed, sink);
  EXPECT_EQ(result.steps, 2 * (640 / choice->batch_size));
  EXPECT_LE(result.memory.reserved_bytes.peak, static_cast<std::int64_t>(16 * MiB));
}

TEST_F(LargestBatch, IsTheWholeDataSetWhereMemoryIsPlenty) {
  const BatchChoice choice = choose({"model.name=\"mlp\"", "device.simulated.capacity=\"1GiB\"", "data.limit=100"});
  EXPECT_EQ(choice.batch_size, 100);
  EXPECT_TRUE(choice.has_all_examples);
}

TEST_F(LargestBatch, FillsACeilingOfTheAllocatorOnTheHost) {
  const BatchChoice choice = choose({"model.name=\"lenet\"", "device.name=\"cpu:0\"", "allocator.layers=[\"limit\"]",
                                     "allocator.limit.bytes=\"16MiB\""});
  EXPECT_GT(choice.batch_size, 10);
  EXPECT_LT(choice.batch_size, 640);
}

TEST_F(LargestBatch, HasAnExampleForEachPart) {
  const BatchChoice choice =
      choose({"model.name=\"lenet\"", "device.simulated.capacity=\"12MiB\"", "train.micro_batches=4"});
  EXPECT_GE(choice.batch_size, 4);
}

TEST_F(LargestBatch, SaysWhyThereIsNone) {
  EXPECT_THAT(mistake({"device.name=\"cpu:0\""}),
              AllOf(HasSubstr("train.batch_size"), HasSubstr("has no end"), HasSubstr("device.cpu.capacity"),
                    HasSubstr("allocator.limit.bytes")));
  EXPECT_THAT(mistake({"device.simulated.capacity=0"}), HasSubstr("that of simulated:0 has no end"));
  EXPECT_THAT(mistake({"model.name=\"lenet\"", "device.simulated.capacity=\"2MiB\""}),
              AllOf(HasSubstr("simulated:0 needs"), HasSubstr("2.00 MiB")));
  EXPECT_THAT(mistake({"train.batch_size=0"}), HasSubstr("from 1 to 16777216, or \"auto\"; got 0"));
  EXPECT_THAT(mistake({"train.batch_size=\"all\""}), HasSubstr("or \"auto\""));
}

TEST_F(LargestBatch, IsThatOfTheRunThatGoesOn) {
  const std::string file = (folder / "state").string();
  const Words small{"device.simulated.capacity=\"12MiB\"", "model.name=\"lenet\"", "train.epochs=2",
                    "train.max_steps=3"};
  Words first = small;
  first.push_back("train.save=\"" + file + "\"");
  ExperimentConfig config1 = config(first);
  const BatchChoice before = *with_largest_batch(config1, sink);
  install(config1);
  run_experiment(config1, sink);
  shutdown();
  const BatchChoice after = choose({"device.simulated.capacity=\"24MiB\"", "model.name=\"lenet\"", "train.epochs=2",
                                    "train.resume=\"" + file + "\""});
  EXPECT_EQ(after.batch_size, before.batch_size);
  EXPECT_EQ(after.probes + after.confirmations, 0);
}

// The stand-in has addresses alone; what runs next on a device of its kind computes.
TEST_F(LargestBatch, LeavesADeviceThatComputesAsItIs) {
  shutdown();
  ExperimentConfig changed = config({"model.name=\"lenet\"", "allocator.layers=[\"limit\"]",
                                     "allocator.limit.bytes=\"16MiB\"", "train.max_steps=2", "train.epochs=2"});
  changed.backend_options.clear();  // as where nothing is said of the device
  set_backend_options("simulated", Options(find_backend("simulated").options()));
  const std::optional<BatchChoice> choice = with_largest_batch(changed, sink);
  ASSERT_TRUE(choice);
  EXPECT_GE(choice->confirmations, 1);
  install(changed);
  for (const double loss : run_experiment(changed, sink).losses) EXPECT_TRUE(std::isfinite(loss));
  shutdown();
  estimate_memory(changed);
  EXPECT_EQ(backend_options("simulated").text("mode"), "backed") << "an estimate leaves it too";
}

TEST_F(LargestBatch, HasToBeFoundBeforeTraining) {
  const ExperimentConfig unresolved = config({"device.simulated.capacity=\"1GiB\""});
  install(unresolved);
  EXPECT_THROW(run_experiment(unresolved, sink), Error);
  shutdown();
  EXPECT_GT(estimate_memory(unresolved).memory.requested_bytes.peak, 0) << "an estimate finds it by itself";
}

}  // namespace
}  // namespace tenon::test
