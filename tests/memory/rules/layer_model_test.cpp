// Layers against what they say they do, at each edge of their options: one below, at it, one above.
// Long: each layer has a model of its own, and they share how a layer is made.
#include <tenon/core/text/counted.h>
#include <tenon/memory/layers/budget.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using test::make_stack;
using test::reported;
using ::testing::HasSubstr;

using Texts = std::vector<std::pair<std::string, std::string>>;

/// Blocks exactly as long as they are asked for, each in a segment of its own.
class Exactly final : public Allocator {
 public:
  explicit Exactly(MemorySource& source) : source_(source) {}
  Block allocate(const Request& request) override {
    asked.push_back(request);
    void* const data = source_.acquire(request.bytes);
    given = data;
    if (data == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }
  std::size_t trim(std::size_t keep_bytes) override {
    trims.push_back(keep_bytes);
    return 0;
  }

  std::vector<Request> asked;
  Address given;  ///< the last block
  std::vector<std::size_t> trims;

 private:
  MemorySource& source_;
};

/// 64 MiB of the host's own memory, or addresses without end.
template <class Source>
Source made_device() {
  if constexpr (std::is_same_v<Source, HostMemorySource>)
    return Source({.device = "cpu", .capacity_bytes = 64 * MiB});
  else
    return Source();
}

/// A layer above it, without a stack around the two.
template <class Source = AddressOnlySource>
struct Over {
  explicit Over(const test::LayerText& text) : config(test::layer(text)) {
    auto exactly = std::make_unique<Exactly>(device);
    policy = exactly.get();
    layer = find_layer(text.name).create(
        std::move(exactly),
        {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
  }
  /// Whether such a request is served; its block goes at once.
  bool serves(const Request& request) {
    try {
      layer->deallocate(layer->allocate(request), request.stream);
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  }
  std::string said(const std::string& key) const {
    std::string all;
    for (const auto& [name, value] : layer->summary())
      if (name == key) all += (all.empty() ? "" : "\n") + value;
    return all;
  }

  Source device = made_device<Source>();
  ObservedSource observed{device};
  LayerConfig config;
  Exactly* policy = nullptr;
  std::unique_ptr<LayerAllocator> layer;
};

// ---- which requests are meant: inject and route

struct FilterCase {
  Texts options;
  std::size_t min = 0, max = SIZE_MAX;
  std::optional<Purpose> purpose;
  std::optional<std::uint64_t> stream;
};

TEST(RequestFilters, MeanWhatIsWithinAllOfTheirBounds) {
  const FilterCase cases[] = {{.options = {}},
                              {.options = {{"min_size", "1000"}}, .min = 1000},
                              {.options = {{"max_size", "1000"}}, .max = 1000},
                              {.options = {{"min_size", "1000"}, {"max_size", "1000"}}, .min = 1000, .max = 1000},
                              {.options = {{"purpose", "data"}}, .purpose = Purpose::kData},
                              {.options = {{"stream", "0"}}, .stream = 0},
                              {.options = {{"stream", "2"}, {"purpose", "gradient"}, {"min_size", "999"}},
                               .min = 999,
                               .purpose = Purpose::kGradient,
                               .stream = 2}};
  for (const FilterCase& filter : cases) {
    Texts options = filter.options;
    options.emplace_back("every", "1");
    Over over({"inject", options});
    for (const std::size_t bytes : {1, 998, 999, 1000, 1001})
      for (int purpose = 0; purpose < kPurposeCount; ++purpose)
        for (const std::uint64_t stream : {0, 1, 2}) {
          const bool is_meant = bytes >= filter.min && bytes <= filter.max &&
                                (!filter.purpose || static_cast<int>(*filter.purpose) == purpose) &&
                                (!filter.stream || *filter.stream == stream);
          EXPECT_EQ(over.serves({.bytes = bytes, .stream = {stream}, .purpose = static_cast<Purpose>(purpose)}),
                    !is_meant)
              << bytes << " bytes, purpose " << purpose << ", stream " << stream;
        }
  }
}

TEST(RequestFilters, RefuseBoundsThatNothingIsWithin) {
  EXPECT_THROW(Over({"inject", {{"min_size", "1001"}, {"max_size", "1000"}}}), ConfigError);
  EXPECT_NO_THROW(Over({"inject", {{"min_size", "1000"}, {"max_size", "1000"}}}));
}

// ---- inject

TEST(InjectedFailures, AreThoseOfTheirNumbersUpToTheMost) {
  for (const int nth : {0, 1, 3})
    for (const bool persists : {false, true})
      for (const int every : {0, 1, 2, 5})
        for (const int most : {0, 1, 3}) {
          SCOPED_TRACE(fmt::format("nth {}, persist {}, every {}, failures {}", nth, persists, every, most));
          Over over({"inject",
                     {{"nth", std::to_string(nth)},
                      {"persist", persists ? "true" : "false"},
                      {"every", std::to_string(every)},
                      {"failures", std::to_string(most)}}});
          int failures = 0;
          for (int call = 1; call <= 12; ++call) {
            const bool is_nth = nth > 0 && (persists ? call >= nth : call == nth);
            const bool is_kth = every > 0 && call % every == 0;
            const bool fails = (is_nth || is_kth) && (most == 0 || failures < most);
            failures += fails;
            EXPECT_EQ(over.serves({.bytes = 512}), !fails) << "call " << call;
          }
          EXPECT_EQ(over.said("calls"), "12");
          EXPECT_EQ(over.said("injected_failures"), std::to_string(failures));
        }
}

TEST(InjectedFailures, OfProbabilityOneAreAllAndOfZeroNone) {
  Over always({"inject", {{"probability", "1"}}}), never({"inject", {{"probability", "0"}}});
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(always.serves({.bytes = 512}));
    EXPECT_TRUE(never.serves({.bytes = 512}));
  }
}

TEST(InjectedFailures, SayWhichCallItWas) {
  Over over({"inject", {{"nth", "2"}}});
  over.serves({.bytes = 512});
  try {
    over.layer->allocate({.bytes = 700});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().requested_bytes, 700u);
    EXPECT_THAT(error.info().hint, HasSubstr("its call number 2"));
  }
}

TEST(InjectedFailures, OfTheDeviceAreOfTheRequestThatIsServed) {
  AddressOnlySource device;
  const auto stack = make_stack(device, {{"inject", {{"call", "acquire"}, {"every", "1"}, {"purpose", "data"}}}});
  EXPECT_THROW(stack->allocate({.bytes = 512, .purpose = Purpose::kData}), OutOfMemory);
  const Block block = stack->allocate({.bytes = 512, .purpose = Purpose::kGradient});
  stack->deallocate(block);
}

// ---- limit and budget

TEST(AllocatedLimit, LetsThroughWhatFitsToTheLastByte) {
  for (const std::size_t live : {0, 1, 400, 999, 1000})
    for (const std::size_t more : {1, 2, 599, 600, 601, 999, 1000, 1001, 5000}) {
      Over over({"limit", {{"bytes", "1000B"}, {"of", "allocated"}}});
      EXPECT_EQ(over.said("limit"), "1000");
      if (live != 0) over.layer->allocate({.bytes = live});
      EXPECT_EQ(over.serves({.bytes = more}), live + more <= 1000) << live << " + " << more;
      EXPECT_EQ(over.serves({.bytes = more}), live + more <= 1000) << "and once more";
    }
  Over reserved({"limit", {{"bytes", "3MiB"}}});
  EXPECT_EQ(reserved.said("limit"), "3MiB");
  EXPECT_EQ(reserved.observed.limit(), 3 * MiB);
}

TEST(Budgets, HoldEachPurposeToTheLastByteAndSayWhatIsInUse) {
  Texts options;
  for (int i = 0; i < kPurposeCount; ++i)
    if (i % 2 == 1) options.emplace_back(name_of(static_cast<Purpose>(i)), std::to_string(1000 * i) + "B");
  Over over({"budget", options});
  std::vector<std::size_t> live(kPurposeCount);
  std::vector<Block> blocks;
  std::mt19937_64 random(5);
  for (int step = 0; step < 2000; ++step) {
    SCOPED_TRACE(step);
    if (random() % 3 == 0 && !blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      live[static_cast<std::size_t>(blocks.back().request.purpose)] -= blocks.back().request.bytes;
      over.layer->deallocate(blocks.back(), {});
      blocks.pop_back();
      continue;
    }
    const std::size_t purpose = random() % kPurposeCount, budget = purpose % 2 == 1 ? 1000 * purpose : 0;
    const std::size_t left = budget == 0 ? 100 : budget - live[purpose];
    // Just what is left, one more, more than all of it, and anything.
    const std::size_t sizes[] = {std::max<std::size_t>(left, 1), left + 1, budget + 1, 1 + random() % 2000};
    const std::size_t bytes = sizes[random() % 4];
    const bool fits = budget == 0 || live[purpose] + bytes <= budget;
    try {
      blocks.push_back(over.layer->allocate({.bytes = bytes, .purpose = static_cast<Purpose>(purpose)}));
      EXPECT_TRUE(fits);
      live[purpose] += bytes;
    } catch (const OutOfMemory& error) {
      EXPECT_FALSE(fits);
      EXPECT_EQ(error.info().requested_bytes, bytes);
      EXPECT_EQ(error.info().limit_bytes, budget);
      EXPECT_EQ(purpose_over_budget(error.info()), static_cast<Purpose>(purpose));
      EXPECT_EQ(error.info().hint,
                fmt::format("the budget for purpose '{0}' is {1}, of which {2} are in use: raise option '{0}' of layer "
                            "'budget'",
                            name_of(static_cast<Purpose>(purpose)), format_bytes(budget), format_bytes(live[purpose])));
    }
    std::size_t limited = 0;
    for (int i = 1; i < kPurposeCount; i += 2, ++limited)
      EXPECT_EQ(
          over.said(std::string(name_of(static_cast<Purpose>(i)))),
          format_bytes(live[static_cast<std::size_t>(i)]) + " of " + format_bytes(1000 * static_cast<std::size_t>(i)));
    EXPECT_EQ(over.layer->summary().size(), limited);
  }
}

TEST(Budgets, DoNotCountWhatThePolicyCouldNotServe) {
  AddressOnlySource small({.capacity_bytes = 4096});
  const auto stack = make_stack(small, {{"budget", {{"data", "1MiB"}}}});
  for (int i = 0; i < 3; ++i)
    EXPECT_THROW(stack->allocate({.bytes = 512 * KiB, .purpose = Purpose::kData}), OutOfMemory);
  EXPECT_EQ(reported(*stack, "budget", "data"), "0 B of 1.00 MiB");
  EXPECT_EQ(purpose_over_budget({.hint = "nothing of the kind"}), std::nullopt);
}

// ---- round and align

TEST(Rounding, IsToTheNextStepAndMultipleFromTheSmallestSizeOn) {
  for (const std::size_t multiple : {0, 1, 512, 3000})
    for (const std::size_t divisions : {0, 1, 2, 8})
      for (const std::size_t least : {0, 1000}) {
        Over over({"round",
                   {{"multiple", std::to_string(multiple) + "B"},
                    {"divisions", std::to_string(divisions)},
                    {"min_size", std::to_string(least) + "B"}}});
        for (std::size_t bytes = 1; bytes < 5000; bytes += bytes < 20 || (bytes > 990 && bytes < 1040) ? 1 : 37) {
          std::size_t wanted = bytes;
          const std::size_t step = divisions == 0 ? 0 : std::bit_floor(bytes) / divisions;
          while (bytes >= least && step != 0 && wanted % step != 0) ++wanted;
          while (bytes >= least && multiple != 0 && wanted % multiple != 0) ++wanted;
          const Block block = over.layer->allocate({.bytes = bytes});
          ASSERT_EQ(over.policy->asked.back().bytes, wanted)
              << bytes << " to " << multiple << ", " << divisions << " divisions, from " << least;
          over.layer->deallocate(block, {});
        }
      }
}

TEST(Aligning, IsForRequestsFromTheSmallestSizeOnAndTakesNoMoreThanItMayNeed) {
  for (const std::size_t alignment : {1, 64, 512, 1024, 8192})
    for (const std::size_t asked : {64, 512, 4096})
      for (const std::size_t bytes : {1, 999, 1000, 1001, 5000}) {
        Over over({"align", {{"alignment", std::to_string(alignment) + "B"}, {"min_size", "1000B"}}});
        const Block first = over.layer->allocate({.bytes = 512});  // so that the next one is not aligned by chance
        const Block block = over.layer->allocate({.bytes = bytes, .alignment = asked});
        const std::size_t wanted = bytes >= 1000 ? std::max(alignment, asked) : asked;
        EXPECT_EQ(Address(block.data) % wanted, 0u);
        EXPECT_GE(block.bytes, bytes);
        EXPECT_EQ(block.request.alignment, asked);
        EXPECT_EQ(over.policy->asked.back().alignment, std::min(wanted, kMaxAlignment));
        EXPECT_EQ(over.policy->asked.back().bytes, bytes + (wanted > kMaxAlignment ? wanted - kMaxAlignment : 0));
        EXPECT_EQ(Address(block.data) + block.bytes, over.policy->given + over.policy->asked.back().bytes)
            << "to its end";
        EXPECT_LT(Address(block.data) - over.policy->given, wanted) << "from the first multiple on";
        over.layer->deallocate(block, {});
        over.layer->deallocate(first, {});
      }
}

// ---- retry

TEST(Retries, AreAsManyAsAreAllowedWithAWaitAndATrimBeforeEach) {
  struct Counted final : ForwardingSource {
    using ForwardingSource::ForwardingSource;
    void synchronize() override { ++waits; }
    int waits = 0;
  };
  struct Failing final : Allocator {
    Block allocate(const Request& request) override {
      if (failures-- > 0) throw OutOfMemory({.requested_bytes = request.bytes});
      return {.data = this, .bytes = request.bytes, .request = request};
    }
    void deallocate(const Block&, StreamRef) noexcept override {}
    std::size_t trim(std::size_t keep_bytes) override { return trims.push_back(keep_bytes), 0; }
    int failures = 0;
    std::vector<std::size_t> trims;
  };
  for (const bool waits : {false, true})
    for (const int attempts : {1, 2, 5})
      for (int failures = 0; failures < 8; ++failures) {
        AddressOnlySource device;
        Counted counted(device);
        ObservedSource observed(device);
        const LayerConfig config =
            test::layer({"retry", {{"attempts", std::to_string(attempts)}, {"synchronize", waits ? "true" : "false"}}});
        auto failing = std::make_unique<Failing>();
        Failing& policy = *failing;
        const auto layer = find_layer("retry").create(
            std::move(failing),
            {.options = config.options, .traits = device.traits(), .source = counted, .observed = observed});
        policy.failures = failures;
        bool is_served = true;
        try {
          layer->allocate({.bytes = 512});
        } catch (const OutOfMemory&) {
          is_served = false;
        }
        const int tried_again = std::min(failures, attempts);
        EXPECT_EQ(is_served, failures <= attempts);
        EXPECT_EQ(policy.trims, std::vector<std::size_t>(static_cast<std::size_t>(tried_again), 0));
        EXPECT_EQ(counted.waits, waits ? tried_again : 0);
        const auto said = layer->summary();
        EXPECT_EQ(said[0], std::pair(std::string("retries"), std::to_string(tried_again)));
        EXPECT_EQ(said[1], std::pair(std::string("recovered"), std::string(is_served && failures > 0 ? "1" : "0")));
        EXPECT_EQ(said[2], std::pair(std::string("given_up"), std::string(is_served ? "0" : "1")));
      }
}

// ---- stats

TEST(StatsOfALayer, AreThoseOfPlainCounters) {
  Over over({"stats", {}});
  Stat blocks, requested;
  std::map<int, int> by_size;
  std::size_t largest = 0, failures = 0;
  std::vector<Block> live;
  std::mt19937_64 random(3);
  for (int step = 0; step < 600; ++step) {
    const std::uint64_t choice = random() % 40;
    if (choice == 0) {
      over.layer->reset_stats(true, false);
      blocks.reset_peak(), requested.reset_peak();
    } else if (choice == 1) {
      over.layer->reset_stats(false, true);
      blocks.reset_accumulated(), requested.reset_accumulated();
      by_size.clear();
      failures = 0;
    } else if (choice < 18 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      over.layer->deallocate(live.back(), {});
      blocks.decrease(1);
      requested.decrease(static_cast<std::int64_t>(live.back().bytes));
      live.pop_back();
    } else if (choice == 18) {
      EXPECT_THROW(over.layer->allocate({.bytes = SIZE_MAX}), OutOfMemory);
      ++failures;
    } else {
      const std::size_t bytes = (std::size_t{1} << (random() % 12)) + random() % 3;
      live.push_back(over.layer->allocate({.bytes = bytes}));
      blocks.increase(1);
      requested.increase(static_cast<std::int64_t>(bytes));
      largest = std::max(largest, bytes);
      ++by_size[std::bit_width(bytes) - 1];
    }
    std::string sizes;
    for (const auto& [power, count] : by_size)
      sizes += fmt::format("{}{}:{}", sizes.empty() ? "" : " ", format_size_exact(std::size_t{1} << power), count);
    const auto expect = [&](const char* key, const auto& value) {
      EXPECT_EQ(over.said(key), fmt::format("{}", value)) << key << ", step " << step;
    };
    expect("allocations", blocks.allocated);
    expect("frees", blocks.freed);
    expect("failures", failures);
    expect("live_blocks", blocks.current);
    expect("peak_blocks", blocks.peak);
    expect("live_requested_bytes", requested.current);
    expect("peak_requested_bytes", requested.peak);
    expect("total_requested_bytes", requested.allocated);
    expect("peak_allocated_bytes", requested.peak);
    expect("largest_request_bytes", largest);
    expect("sizes_from_power_of_two", sizes);
    if (HasFailure()) return;
  }
}

// ---- track

TEST(Tracking, TellsEachFieldOfABlockThatCameBackChanged) {
  for (int field = 0; field < 4; ++field) {
    Over over({"track", {}});
    Block block = over.layer->allocate({.bytes = 700, .stream = {2}});
    int other = 0;
    if (field == 1) block.bytes = 701;
    if (field == 2) block.request.bytes = 699;
    if (field == 3) block.cookie = &other;
    ::testing::internal::CaptureStderr();
    over.layer->deallocate(block, {2});
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find("size mismatch") != std::string::npos, field != 0) << field;
    EXPECT_EQ(over.said("faults"), field == 0 ? "0" : "1");
    EXPECT_EQ(over.device.used_bytes(), 0u) << "freed as it was handed out";
    if (field == 1) {
      EXPECT_THAT(text,
                  HasSubstr("was handed out with 700 bytes (700 requested) and came back with 701 (700 requested)"));
    }
    if (field == 2) {
      EXPECT_THAT(text,
                  HasSubstr("was handed out with 700 bytes (700 requested) and came back with 700 (699 requested)"));
    }
  }
}

TEST(Tracking, ListsTheTenOldestBlocksAndCountsAll) {
  for (const std::size_t count : {0, 1, 9, 10, 11, 30}) {
    Over over({"track", {}});
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 3; ++i) blocks.push_back(over.layer->allocate({.bytes = 50}));
    for (std::size_t i = 0; i < count; ++i)
      over.layer->allocate({.bytes = 100 + i, .stream = {i}, .purpose = Purpose::kGradient});
    for (const Block& block : blocks) over.layer->deallocate(block, {});
    const std::size_t bytes = count * 100 + count * (count - (count > 0)) / 2;
    EXPECT_EQ(over.said("live_blocks"), std::to_string(count));
    EXPECT_EQ(over.said("live_bytes"), std::to_string(bytes));
    const std::string listed = over.said("live");
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(listed, '\n')) + (count > 0),
              std::min<std::size_t>(count, 10));
    std::size_t at = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 10); ++i) {
      at = listed.find(fmt::format("{} bytes, gradient, stream {}, allocation number {}", 100 + i, i, 4 + i), at);
      EXPECT_NE(at, std::string::npos) << i << " of " << count;
    }
    ::testing::internal::CaptureStderr();
    over.layer.reset();
    const std::string text = ::testing::internal::GetCapturedStderr();
    if (count == 0) {
      EXPECT_EQ(text, "");
    }
    if (count != 0) {
      EXPECT_THAT(text, HasSubstr(fmt::format("tenon: track: {} never freed, {} in all",
                                              counted(count, "block was", "blocks were"), format_bytes(bytes))));
    }
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')),
              count == 0 ? 0 : 1 + std::min<std::size_t>(count, 10));
  }
}

TEST(Tracking, KeepsTheStackOfEveryNthAllocation) {
  Over over({"track", {{"stack_every", "3"}}});
  for (int i = 0; i < 7; ++i) over.layer->allocate({.bytes = 100});
  std::vector<bool> has_stack;
  for (const auto& [key, value] : over.layer->summary())
    if (key == "live") has_stack.push_back(value.find('\n') != std::string::npos);
  EXPECT_THAT(has_stack, ::testing::ElementsAre(false, false, true, false, false, true, false));
  ::testing::internal::CaptureStderr();
  over.layer.reset();
  ::testing::internal::GetCapturedStderr();
}

TEST(Tracking, AnAddressThatIsHandedOutAgainIsNoDoubleFree) {
  Over over({"track", {}});
  const Block first = over.layer->allocate({.bytes = 512});
  over.layer->deallocate(first, {});
  const Block again = over.layer->allocate({.bytes = 512});
  over.layer->deallocate(again, {});
  EXPECT_EQ(over.said("faults"), "0");
}

TEST(Faults, AreKeptUpToSixteenAndCountedBeyond) {
  for (const int count : {1, 15, 16, 17, 40}) {
    Over over({"track", {{"on_error", "throw"}}});
    int local = 0;
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < count; ++i) over.layer->deallocate({.data = &local, .bytes = static_cast<std::size_t>(i)}, {});
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(text, '\n'), std::min(count, 16));
    EXPECT_THAT(text, HasSubstr("tenon: track: unknown free"));
    EXPECT_EQ(over.said("faults"), std::to_string(count));
    EXPECT_EQ(std::ranges::count(over.said("fault"), '\n') + 1, std::min(count, 16));
    EXPECT_THROW(over.layer->check_invariants(), Error);
    try {
      over.layer->allocate({.bytes = 512});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("track: unknown free"));
      EXPECT_THAT(error.what(), HasSubstr("of 0 bytes")) << "the first that was not thrown yet";
    }
    EXPECT_NO_THROW(over.layer->deallocate(over.layer->allocate({.bytes = 512}), {}));
    ::testing::internal::CaptureStderr();
    over.layer->deallocate({.data = &local, .bytes = 99}, {});
    ::testing::internal::GetCapturedStderr();
    try {
      over.layer->allocate({.bytes = 512});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(count < 16 ? "of 99 bytes" : "further faults"));
    }
  }
}

// ---- guard

/// On the host's own memory.
struct Guarded : Over<HostMemorySource> {
  explicit Guarded(Texts options) : Over({"guard", std::move(options)}) {}
  std::string freeing(const Block& block) {
    ::testing::internal::CaptureStderr();
    layer->deallocate(block, block.request.stream);
    return ::testing::internal::GetCapturedStderr();
  }
  static unsigned char* bytes(const Block& block) { return static_cast<unsigned char*>(block.data); }
};

TEST(Guarding, FindsTheFirstByteThatWasWrittenOutsideWhereverItLies) {
  for (const std::size_t alignment : {64, 256})
    for (const std::size_t zone : {1, 64, 100}) {
      const std::size_t front = (zone + alignment - 1) / alignment * alignment;
      Guarded guarded(Texts{{"red_zone", std::to_string(zone) + "B"}});
      for (std::ptrdiff_t at = -static_cast<std::ptrdiff_t>(front); at < static_cast<std::ptrdiff_t>(101 + zone);
           ++at) {
        const Block block = guarded.layer->allocate({.bytes = 101, .alignment = alignment});
        EXPECT_EQ(guarded.policy->asked.back().bytes, front + 101 + zone);
        guarded.bytes(block)[at] = 1;
        const std::string text = guarded.freeing(block);
        const std::string wanted = at < 0      ? fmt::format("(other), {} bytes before", -at)
                                   : at >= 101 ? fmt::format("(other), {} bytes past", at - 101)
                                               : "";
        if (guarded.said("faults") != "0" && std::stoi(guarded.said("faults")) > 16) break;  // the rest is only counted
        EXPECT_THAT(text, HasSubstr(wanted)) << at;
        EXPECT_EQ(text.empty(), wanted.empty()) << at << ": " << text;
      }
    }
}

TEST(Guarding, EveryByteOutsideCountsAsAFault) {
  Guarded guarded(Texts{{"red_zone", "70B"}});
  int faults = 0;
  ::testing::internal::CaptureStderr();
  for (std::ptrdiff_t at = -128; at < 101 + 70; ++at) {
    const Block block = guarded.layer->allocate({.bytes = 101});
    guarded.bytes(block)[at] = 1;
    guarded.layer->deallocate(block, {});
    faults += at < 0 || at >= 101;
    EXPECT_EQ(guarded.said("faults"), std::to_string(faults)) << at;
  }
  ::testing::internal::GetCapturedStderr();
}

TEST(Guarding, PoisonsEveryByteOfTheBlockWhereItIsAsked) {
  // Large enough for pages of its own, which the system gives zeroed: the heap's bytes may be any, 0xCD as well.
  constexpr std::size_t kBytes = 2 * MiB + 200;
  for (const bool fresh : {false, true})
    for (const bool freed : {false, true}) {
      Guarded guarded(Texts{{"poison_on_allocate", fresh ? "true" : "false"},
                            {"poison_on_free", freed ? "true" : "false"},
                            {"quarantine", "16MiB"}});
      const Block block = guarded.layer->allocate({.bytes = kBytes});
      const auto count = [&](unsigned char value) {
        return static_cast<std::size_t>(std::count(guarded.bytes(block), guarded.bytes(block) + kBytes, value));
      };
      EXPECT_EQ(count(fresh ? 0xCD : 0), kBytes);
      std::memset(block.data, 0x11, kBytes);
      EXPECT_EQ(guarded.freeing(block), "");
      EXPECT_EQ(count(freed ? 0xDD : 0x11), kBytes);
      guarded.bytes(block)[kBytes - 1] = 1;
      ::testing::internal::CaptureStderr();
      EXPECT_EQ(guarded.layer->trim(3), 0u);
      const std::string text = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(text.find("written after it was freed") != std::string::npos, freed);
      if (freed) {
        EXPECT_THAT(text, HasSubstr(fmt::format("at byte {}", kBytes - 1)));
      }
      EXPECT_EQ(guarded.policy->trims, std::vector<std::size_t>{3});
    }
}

TEST(Guarding, HoldsBackTheNewestFreedBlocksUpToItsQuarantine) {
  for (const std::size_t quarantine : {0, 327, 328, 329, 655, 656, 657, 100000}) {
    Guarded guarded(Texts{{"quarantine", std::to_string(quarantine) + "B"}});
    std::deque<std::size_t> held;
    std::size_t sum = 0;
    for (int i = 0; i < 12; ++i) {
      const Block block = guarded.layer->allocate({.bytes = 200 + static_cast<std::size_t>(i % 3)});
      EXPECT_EQ(guarded.freeing(block), "");
      held.push_back(guarded.policy->asked.back().bytes);
      sum += held.back();
      while (sum > quarantine) sum -= held.front(), held.pop_front();
      EXPECT_EQ(guarded.said("quarantined_bytes"), std::to_string(sum)) << quarantine << ", " << i;
    }
    guarded.layer->trim(0);
    EXPECT_EQ(guarded.said("quarantined_bytes"), "0");
    EXPECT_EQ(guarded.device.usage().free_bytes, guarded.device.usage().total_bytes) << "all of it went back";
  }
}

}  // namespace
}  // namespace tenon
