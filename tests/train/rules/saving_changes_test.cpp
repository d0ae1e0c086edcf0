// Which settings would make a run need less: each held against an estimate of its own, and said in words.
#include "train/experiment_fixture.h"

#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/estimate/saving_changes.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

class Saving : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }
  ExperimentConfig config(Words more) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"model.name=\"gpt\"",
                         "model.hidden=32",
                         "model.context=32",
                         "data.name=\"text\"",
                         "data.path=\"" + (folder / "text").string() + "\"",
                         "data.test_limit=8",
                         "train.batch_size=9",
                         "train.test_batch_size=5",
                         "allocator.name=\"direct\"",
                         "device.name=\"simulated:0\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  /// Those of `settings` under which less is requested, by how much that is.
  std::multimap<std::int64_t, std::string> lower(const Words& base, const Words& settings) {
    std::multimap<std::int64_t, std::string> found;
    const std::int64_t peak = estimate_memory(config(base)).memory.requested_bytes.peak;
    for (const std::string& setting : settings) {
      Words words = base;
      words.push_back(setting);
      try {
        const std::int64_t bytes = estimate_memory(config(words)).memory.requested_bytes.peak;
        if (bytes < peak) found.emplace(bytes, setting);
      } catch (const Error&) {
      }
    }
    return found;
  }
  void expect_changes(const Words& base, const Words& settings) {
    const SavingChanges found = changes_that_save(config(base), 1e6);
    EXPECT_EQ(found.peak_requested_bytes, estimate_memory(config(base)).memory.requested_bytes.peak);
    const auto wanted = lower(base, settings);
    std::multimap<std::int64_t, std::string> all;
    for (const SavingChange& change : found.changes) all.emplace(change.peak_requested_bytes, change.setting);
    EXPECT_EQ(all, wanted);
    EXPECT_TRUE(std::ranges::is_sorted(found.changes, {}, &SavingChange::peak_requested_bytes));
    EXPECT_GT(wanted.size(), 3U);
  }
};

TEST_F(Saving, ChangesAreThoseThatTakeLessByTheirOwnEstimate) {
  expect_changes(
      {}, {"train.checkpoint=true", "train.precision=\"bfloat16-mixed\"", "train.batch_size=4", "train.micro_batches=2",
           "train.test_batch_size=2", "train.offload=\"activations\"", "train.optimizer_states=\"8bit\"",
           "train.optimizer_in_backward=true", "train.inplace_activations=true"});
}

TEST_F(Saving, ChangesGoOnFromWhatIsSetAlready) {
  expect_changes(
      {"train.micro_batches=3", "train.checkpoint=true", "train.zero_grad=\"zero\""},
      {"train.precision=\"bfloat16-mixed\"", "train.batch_size=4", "train.micro_batches=6", "train.test_batch_size=2",
       "train.optimizer_states=\"8bit\"", "train.zero_grad=\"none\"", "train.inplace_activations=true"});
}

TEST_F(Saving, ChangesAreOnlyOfWhatCanBeHalved) {
  const Words least = {"train.batch_size=1", "train.test_batch_size=1"};
  for (const SavingChange& change : changes_that_save(config(least), 1e6).changes)
    for (const char* setting : {"train.batch_size", "train.test_batch_size", "train.micro_batches"})
      EXPECT_FALSE(change.setting.starts_with(setting)) << change.setting;
  const auto parts = changes_that_save(config({"train.batch_size=4", "train.micro_batches=2"}), 1e6).changes;
  EXPECT_TRUE(std::ranges::any_of(parts, [](const auto& c) { return c.setting == "train.micro_batches=4"; }));
}

TEST_F(Saving, AChangeFitsWhereItsRunComesToItsEnd) {
  const SavingChanges free = changes_that_save(config({}), 1e6);
  for (const SavingChange& change : free.changes) EXPECT_TRUE(change.fits) << "nothing ends " << change.setting;
  ASSERT_GT(free.changes.size(), 3U);
  const std::int64_t middle = free.changes[free.changes.size() / 2].peak_reserved_bytes;
  const SavingChanges some = changes_that_save(config({fmt::format("device.simulated.capacity={}", middle)}), 1e6);
  int fitting = 0;
  for (const SavingChange& change : some.changes) {
    EXPECT_EQ(change.fits, change.peak_reserved_bytes <= middle) << change.setting;
    fitting += change.fits ? 1 : 0;
  }
  EXPECT_GT(fitting, 0);
}

TEST_F(Saving, NothingIsSaidOfServingNorWithoutTimeNorOfARunThatCannotBe) {
  EXPECT_TRUE(changes_that_save(config({"serve.requests=1"}), 1e6).changes.empty());
  EXPECT_TRUE(changes_that_save(config({}), -1).changes.empty());
  EXPECT_TRUE(changes_that_save(config({"data.path=\"nowhere\""}), 1e6).changes.empty());
}

TEST(SavingWords, NameTheThreeThatSaveMost) {
  EXPECT_EQ(SavingChanges().text(), "");
  constexpr std::int64_t kMebibyte = 1 << 20;
  SavingChanges changes;
  changes.peak_requested_bytes = 100 * kMebibyte;
  for (int i = 1; i <= 4; ++i)
    changes.changes.push_back({.setting = fmt::format("train.setting{}=true", i),
                               .peak_requested_bytes = i * 10 * kMebibyte,
                               .peak_reserved_bytes = i * 20 * kMebibyte,
                               .fits = i == 1});
  EXPECT_EQ(changes.text(),
            "What would save most (runs on addresses until their memory settles, 100.0 MiB as it is):\n"
            "  train.setting1=true                    10.0 MiB at the peak,   90.0 MiB less; fits\n"
            "  train.setting2=true                    20.0 MiB at the peak,   80.0 MiB less; does not fit yet\n"
            "  train.setting3=true                    30.0 MiB at the peak,   70.0 MiB less; does not fit yet\n");
  changes.changes.resize(2);
  const std::string two = changes.text();
  EXPECT_EQ(std::ranges::count(two, '\n'), 3);
}

}  // namespace
}  // namespace tenon::test
