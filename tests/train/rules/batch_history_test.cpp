// A run's calls as a function of the batch: what two recordings tell of others, and whether a batch has memory for all
// its steps, each of which is tried again as training does.
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/estimate/batch_history.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tenon::train {
namespace {

using ::testing::ElementsAre;
using Kind = Asked::Kind;

Asked allocation(std::uint32_t block, std::size_t bytes) {
  Asked call{.kind = Kind::kAllocate, .block = block, .request = {}, .stream = {}};
  call.request.bytes = bytes;
  return call;
}
Asked release(std::uint32_t block) { return {.kind = Kind::kFree, .block = block, .request = {}, .stream = {}}; }
Asked step() { return {.kind = Kind::kStep, .request = {}, .stream = {}}; }

/// What a run asks for that grows by 30 bytes with each three examples of its first block, by 2 of its third.
Calls of_batch(std::int64_t batch) {
  const auto periods = static_cast<std::size_t>((batch - 4) / 3);
  return {allocation(0, 100 + 30 * periods),
          step(),
          allocation(1, 50),
          allocation(2, 8 + 2 * periods),
          release(1),
          release(0),
          release(2)};
}

TEST(BatchHistory, OfTwoBatchesTellsOfEveryOneThatIsPeriodsAway) {
  for (const std::int64_t more : {7, 10, 19}) {
    const std::optional<BatchHistory> history = BatchHistory::of(4, of_batch(4), more, of_batch(more), 3);
    ASSERT_TRUE(history) << more;
    for (const std::int64_t batch : {4, 7, 10, 13, 100}) {
      EXPECT_TRUE(history->agrees_with(batch, of_batch(batch))) << batch << " from " << more;
      for (std::size_t i = 0; i < of_batch(4).size(); ++i) {
        Calls other = of_batch(batch);
        if (other[i].kind != Kind::kAllocate) continue;
        ++other[i].request.bytes;
        EXPECT_FALSE(history->agrees_with(batch, other)) << "a byte more in call " << i;
      }
    }
  }
}

TEST(BatchHistory, TellsOfTheLargestUpToABatchThatIsPeriodsAway) {
  const BatchHistory history = BatchHistory::of(4, of_batch(4), 10, of_batch(10), 3).value();
  for (const auto& [asked, told] :
       std::map<std::int64_t, std::int64_t>{{4, 4}, {5, 4}, {6, 4}, {7, 7}, {9, 7}, {10, 10}, {12, 10}, {13, 13}})
    EXPECT_EQ(history.told_below(asked), told) << asked;
}

TEST(BatchHistory, IsNoneOfWhatAreNotTwoSizesOfOneThing) {
  const auto of = [](const Calls& few, const Calls& more) { return BatchHistory::of(4, few, 10, more, 3).has_value(); };
  const Calls few = of_batch(4), more = of_batch(10);
  EXPECT_TRUE(of(few, more));
  EXPECT_TRUE(of(few, few)) << "nothing grows";
  Calls odd = more;
  odd[0].request.bytes += 1;
  EXPECT_FALSE(of(few, odd)) << "61 bytes in two periods";
  Calls less = few;
  less[0].request.bytes -= 2;
  EXPECT_FALSE(of(few, less)) << "it shrinks";
  EXPECT_FALSE(of(few, Calls(more.begin(), more.end() - 1)));
  EXPECT_FALSE(of(Calls(few.begin(), few.end() - 1), more));
  const std::map<std::string, std::function<void(Asked&)>> changes = {
      {"kind", [](Asked& call) { call.kind = call.kind == Kind::kUse ? Kind::kFree : Kind::kUse; }},
      {"block", [](Asked& call) { ++call.block; }},
      {"stream", [](Asked& call) { call.stream.id = 7; }},
      {"keep", [](Asked& call) { call.keep = 7; }},
      {"alignment", [](Asked& call) { call.request.alignment = 4096; }},
      {"stream of a request", [](Asked& call) { call.request.stream.id = 7; }},
      {"purpose", [](Asked& call) { call.request.purpose = Purpose::kGradient; }},
      {"label", [](Asked& call) { call.request.label = 7; }},
      {"pool", [](Asked& call) { call.request.pool = 7; }}};
  const BatchHistory history = BatchHistory::of(4, few, 10, more, 3).value();
  for (const auto& [name, change] : changes) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{4}}) {
      Calls other = more;
      change(other[i]);
      EXPECT_FALSE(of(few, other)) << name << " of call " << i;
      EXPECT_FALSE(history.agrees_with(10, other)) << name << " of call " << i;
      EXPECT_FALSE(history.like(10, other)) << name << " of call " << i;
    }
  }
}

TEST(BatchHistory, OfABatchBetweenGrowsAsThoseThatAreKnown) {
  const BatchHistory history = BatchHistory::of(4, of_batch(4), 10, of_batch(10), 3).value();
  Calls between = of_batch(4);
  between[0].request.bytes = 117;
  between[3].request.bytes = 9;
  const BatchHistory other = history.like(5, between).value();
  EXPECT_TRUE(other.agrees_with(5, between));
  between[0].request.bytes += 60;
  between[3].request.bytes += 4;
  EXPECT_TRUE(other.agrees_with(11, between));
  EXPECT_EQ(other.told_below(12), 11);
  EXPECT_EQ(history.told_below(12), 10) << "which is as it was";
  EXPECT_TRUE(history.agrees_with(4, of_batch(4)));
}

/// Blocks that come and go, in so many steps; some live from before the first and some to the end. Sizes in `unit`s.
Calls drawn(std::mt19937& random, int steps, std::size_t unit) {
  Calls calls;
  std::vector<std::uint32_t> live;
  std::uint32_t blocks = 0;
  for (int i = 0; i <= steps; ++i) {
    if (i > 0) calls.push_back(step());
    for (int call = 0; call < 12; ++call) {
      if (!live.empty() && random() % 5 < 2) {
        const auto which = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
        calls.push_back(release(*which));
        live.erase(which);
      } else {
        calls.push_back(allocation(blocks, unit * (1 + random() % 6)));
        live.push_back(blocks++);
      }
    }
  }
  return calls;
}

/// The most that lives at once, of the calls before the step with that number.
std::uint64_t peak_of(const Calls& calls, int last_step) {
  std::map<std::uint32_t, std::size_t> live;
  std::uint64_t now = 0, peak = 0;
  int steps = 0;
  for (const Asked& call : calls) {
    if (call.kind == Kind::kStep && ++steps == last_step) break;
    if (call.kind == Kind::kAllocate)
      peak = std::max<std::uint64_t>(peak, now += live[call.block] = call.request.bytes);
    if (call.kind == Kind::kFree) now -= live[call.block];
  }
  return peak;
}

/// The same, where each block is three times as large.
Calls thrice(Calls calls) {
  for (Asked& call : calls) call.request.bytes *= 3;
  return calls;
}

TEST(BatchHistory, HasThePeakOfItsFirstStep) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const Calls calls = drawn(random, 1 + round % 3, 8);
    const BatchHistory history = BatchHistory::of(1, calls, 3, thrice(calls), 1).value();
    EXPECT_EQ(history.peak_of_first_step(1), peak_of(calls, 2)) << "round " << round;
    EXPECT_EQ(history.peak_of_first_step(2), 2 * peak_of(calls, 2)) << "round " << round;
    EXPECT_EQ(history.peak_of_first_step(5), 5 * peak_of(calls, 2)) << "round " << round;
  }
}

/// What the allocator of a device was called for: "+5" for bytes, "-2" for the block that came as the third.
class Hears final : public LayerAllocator {
 public:
  Hears(std::unique_ptr<Allocator> inner, std::shared_ptr<std::vector<std::string>> heard)
      : LayerAllocator(std::move(inner)), heard_(std::move(heard)) {}
  Block allocate(const Request& request) override {
    heard_->push_back(fmt::format("+{}", request.bytes));
    const Block block = inner_->allocate(request);
    numbers_[block.data] = next_++;
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    heard_->push_back(fmt::format("-{} at {}", numbers_.at(block.data), last_use.id));
    inner_->deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    heard_->push_back(fmt::format("{} used at {}", numbers_.at(block.data), stream.id));
    inner_->record_use(block, stream);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    heard_->push_back(fmt::format("trim to {}", keep_bytes));
    return inner_->trim(keep_bytes);
  }

 private:
  std::shared_ptr<std::vector<std::string>> heard_;
  std::map<const void*, int> numbers_;
  int next_ = 0;
};

class Shortage : public ::testing::Test {
 protected:
  void TearDown() override { shutdown(); }

  /// A device of addresses with so much memory.
  AllocatorStack& device(const std::string& allocator, std::size_t mib) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\"",
                         fmt::format("device.simulated.capacity=\"{}MiB\"", mib),
                         "allocator.name=\"" + allocator + "\""};
    request.use_environment = false;
    request.sections = training_sections();
    ExperimentConfig config = Config::load(request).experiment();
    if (heard_) {
      add_private_layer({.name = "hears",
                         .summary = "takes down calls",
                         .options = {},
                         .create = [heard = heard_](std::unique_ptr<Allocator> inner,
                                                    const LayerContext&) -> std::unique_ptr<LayerAllocator> {
                           return std::make_unique<Hears>(std::move(inner), heard);
                         },
                         .wrap_source = {}});
      config.allocator.layers.insert(config.allocator.layers.begin(), {"hears", Options()});
    }
    install(config);
    return device_state(where_).allocator();
  }
  /// Of that batch, where `calls` is of a batch of 1 and all grows with it.
  std::optional<OutOfMemoryInfo> of(const Calls& calls, std::int64_t batch = 1,
                                    FreeOrder order = FreeOrder::kAsAllocated) {
    return BatchHistory::of(1, calls, 3, thrice(calls), 1)->shortage(batch, where_, order);
  }

  const Device where_{"simulated:0"};
  std::shared_ptr<std::vector<std::string>> heard_;
};

TEST_F(Shortage, OfAnAllocatorWithoutACacheIsThatOfTheBytesThatLive) {
  std::mt19937 random(5);
  int short_of_it = 0;
  for (int round = 0; round < 60; ++round) {
    AllocatorStack& allocator = device("direct", 64);
    const Calls calls = drawn(random, round % 4, 2 * MiB);
    for (const std::int64_t batch : {1, 2}) {
      const bool fits = static_cast<std::uint64_t>(batch) * peak_of(calls, 100) <= 64 * MiB;
      const auto shortage = of(calls, batch, round % 2 == 0 ? FreeOrder::kAsAllocated : FreeOrder::kBackwards);
      EXPECT_EQ(!shortage, fits) << "round " << round << ", batch " << batch;
      if (shortage) {
        EXPECT_GT(shortage->requested_bytes, 64 * MiB - shortage->allocated_bytes);
      }
      EXPECT_EQ(allocator.stats().allocations.current, 0) << "everything is given back, round " << round;
      EXPECT_EQ(allocator.stats().reserved_bytes.current, 0);
      short_of_it += fits ? 0 : 1;
    }
  }
  EXPECT_GT(short_of_it, 10);
  EXPECT_LT(short_of_it, 110);
}

/// Leaves 40 MiB in the cache, of which a block that comes next takes a part, so that none of it can be given back.
Calls with_cache(const Calls& more) {
  Calls calls = {allocation(0, 40 * MiB), release(0)};
  calls.insert(calls.end(), more.begin(), more.end());
  return calls;
}

TEST_F(Shortage, AStepIsMadeAgainWhereTheCacheHadSomethingToGive) {
  AllocatorStack& allocator = device("caching", 64);
  const Calls work = {allocation(1, 21 * MiB), allocation(2, 30 * MiB), release(1), release(2)};
  Calls in_step = {step()};
  in_step.insert(in_step.end(), work.begin(), work.end());
  EXPECT_FALSE(of(with_cache(in_step)));
  EXPECT_EQ(allocator.stats().ooms, 1) << "the first time";
  EXPECT_EQ(allocator.stats().allocations.current, 0);
  device("caching", 64);
  EXPECT_TRUE(of(with_cache(work))) << "there is no step to make again";
}

TEST_F(Shortage, AStepIsTriedThreeTimesAndThoseBeforeItDoNotCount) {
  Calls steps;  // each ends with the 40 MiB in the cache that the next one cannot use as they are
  std::uint32_t block = 1;
  for (int i = 0; i < 5; ++i, block += 3)
    for (const Asked& call : {step(), allocation(block, 21 * MiB), allocation(block + 1, 30 * MiB), release(block),
                              release(block + 1), allocation(block + 2, 40 * MiB), release(block + 2)})
      steps.push_back(call);
  AllocatorStack& allocator = device("caching", 64);
  EXPECT_FALSE(of(with_cache(steps)));
  EXPECT_EQ(allocator.stats().ooms, 5);
  for (const Asked& call : {step(), allocation(block, 21 * MiB), allocation(block + 1, 50 * MiB)})
    steps.push_back(call);
  AllocatorStack& other = device("caching", 64);
  const auto shortage = of(with_cache(steps));
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->requested_bytes, 50 * MiB);
  EXPECT_EQ(other.stats().ooms, 5 + 3);
  EXPECT_EQ(other.stats().allocations.current, 0);
}

TEST_F(Shortage, AStepThatIsMadeAgainKeepsWhatWasThereBeforeIt) {
  AllocatorStack& allocator = device("caching", 64);
  // Two small blocks live on, and so do the 21 MiB of the step.
  EXPECT_FALSE(of({allocation(0, MiB / 2), allocation(1, 40 * MiB), release(1), allocation(2, MiB / 2), step(),
                   allocation(3, 21 * MiB), allocation(4, 30 * MiB), release(4), step(), release(0), release(2)}));
  EXPECT_EQ(allocator.stats().allocations.current, 0);
  AllocatorStack& full = device("direct", 64);
  EXPECT_TRUE(of({allocation(0, 2 * MiB), step(), allocation(1, 30 * MiB), allocation(2, 34 * MiB)}));
  EXPECT_EQ(full.stats().ooms, 1) << "there was nothing to give back";
}

TEST_F(Shortage, IsAskedWithTheCallsOfTheRun) {
  heard_ = std::make_shared<std::vector<std::string>>();
  device("direct", 64);
  Calls calls = {allocation(0, 64), allocation(1, 128), allocation(2, 256)};
  calls.push_back({.kind = Kind::kUse, .block = 1, .request = {}, .stream = {7}});
  calls.push_back({.kind = Kind::kTrim, .request = {}, .stream = {}, .keep = 5});
  for (const Asked& call : {step(), release(0), release(2), allocation(3, 64), release(3)}) calls.push_back(call);
  of(calls, 2);
  EXPECT_THAT(*heard_, ElementsAre("+128", "+256", "+512", "1 used at 7", "trim to 5", "-0 at 0", "-2 at 0", "+128",
                                   "-3 at 0", "-1 at 0"));
  heard_->clear();
  device("direct", 64);
  of(calls, 1, FreeOrder::kBackwards);
  EXPECT_THAT(*heard_, ElementsAre("+64", "+128", "+256", "1 used at 7", "trim to 5", "-2 at 0", "-0 at 0", "+64",
                                   "-3 at 0", "-1 at 0"));
}

}  // namespace
}  // namespace tenon::train
