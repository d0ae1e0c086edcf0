// What stands between a policy and its device: every call goes through, is counted, and is told of; and what the two
// sources without hardware hold back, at each edge.
// Long: every source has a model of its own, and the watched allocator stands on the same device.
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/memory/watch/watched_allocator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A device that answers as it is told: with memory, without, or with an error.
class Moody final : public ForwardingSource {
 public:
  enum class Mood { kGives, kRefuses, kThrows };
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override { return gives() ? upstream_.acquire(bytes) : nullptr; }
  Physical create(std::size_t bytes) override { return gives() ? upstream_.create(bytes) : Physical{}; }
  Mood mood = Mood::kGives;

 private:
  bool gives() const {
    if (mood == Mood::kThrows) throw Error("in a mood");
    return mood == Mood::kGives;
  }
};

/// Counters as the header of the source describes them.
struct PlainSource {
  SourceCounters counts;
  std::set<std::uint64_t> never_mapped;
  std::size_t user_limit = 0, layer_limit = 0;
  const char* run_end = nullptr;
  bool run_maps = false;
  bool has_refused = false, has_given_back = false;

  std::size_t limit() const {
    if (user_limit == 0) return layer_limit;
    return layer_limit == 0 ? user_limit : std::min(user_limit, layer_limit);
  }
  bool is_over(std::size_t bytes) const {
    return limit() != 0 && static_cast<std::size_t>(counts.reserved_bytes.current) + bytes > limit();
  }
  void asks() {
    if (has_refused && has_given_back) ++counts.retries, has_refused = has_given_back = false;
  }
  void refused() { has_refused = true, has_given_back = false; }
  void took(std::size_t bytes) {
    counts.reserved_bytes.current += static_cast<std::int64_t>(bytes);
    counts.reserved_bytes.allocated += static_cast<std::int64_t>(bytes);
  }
  void came_into_use() {
    counts.reserved_bytes.peak = std::max(counts.reserved_bytes.peak, counts.reserved_bytes.current);
  }
  bool goes_on(bool maps, const void* address, std::size_t bytes) {
    const bool goes_on = run_end == address && run_maps == maps;
    run_end = static_cast<const char*>(address) + bytes;
    run_maps = maps;
    return goes_on;
  }
};

void expect_same(const Stat& is, const Stat& wanted, const char* what) {
  EXPECT_EQ(is.current, wanted.current) << what;
  EXPECT_EQ(is.peak, wanted.peak) << what;
  EXPECT_EQ(is.allocated, wanted.allocated) << what;
  EXPECT_EQ(is.freed, wanted.freed) << what;
}

// Long: one step for each call of a source.
TEST(ObservedSourceModel, EveryFigureIsThatOfPlainCountersWhateverTheDeviceAnswers) {
  constexpr std::size_t kPage = 2 * MiB;
  struct Held {
    Physical physical;
    std::size_t pages;
  };
  for (std::uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    AddressOnlySource device({.page_bytes = kPage});
    Moody moody(device);
    ObservedSource source(moody);
    PlainSource plain;
    auto* const space = static_cast<char*>(source.reserve(64 * kPage));
    std::vector<std::pair<void*, std::size_t>> acquired;
    std::vector<Held> held;
    std::map<std::size_t, Held> mapped;  // by page of the space
    begin_operation();
    for (int step = 0; step < 300 && !HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      const std::uint64_t choice = random() % 24;
      moody.mood = random() % 6 == 0   ? Moody::Mood::kRefuses
                   : random() % 9 == 0 ? Moody::Mood::kThrows
                                       : Moody::Mood::kGives;
      const std::size_t pages = 1 + random() % 3, bytes = pages * kPage;
      if (choice < 6) {
        const bool is_acquire = choice < 3;
        plain.asks();
        const bool is_over = plain.is_over(bytes);
        bool has_thrown = false;
        void* address = nullptr;
        Physical physical;
        try {
          is_acquire ? void(address = source.acquire(bytes)) : void(physical = source.create(bytes));
        } catch (const Error&) {
          has_thrown = true;
        }
        EXPECT_EQ(has_thrown, !is_over && moody.mood == Moody::Mood::kThrows);
        const bool is_served = !is_over && moody.mood == Moody::Mood::kGives;
        EXPECT_EQ(address != nullptr || physical, is_served);
        if (!is_served) {
          if (!has_thrown) plain.refused();
        } else if (is_acquire) {
          acquired.emplace_back(address, bytes);
          ++plain.counts.allocations, ++plain.counts.growths;
          plain.counts.segments.increase(1);
          plain.run_end = nullptr;
          plain.took(bytes);
          plain.came_into_use();
        } else {
          held.push_back({physical, pages});
          ++plain.counts.allocations;
          plain.took(bytes);
          plain.never_mapped.insert(physical.value);
        }
        EXPECT_EQ(source.refused_bytes(),
                  plain.has_refused && !is_served && !has_thrown ? bytes : source.refused_bytes());
      } else if (choice < 9 && !acquired.empty()) {
        std::swap(acquired[random() % acquired.size()], acquired.back());
        const auto [address, size] = acquired.back();
        acquired.pop_back();
        source.release(address, size);
        ++plain.counts.frees, ++plain.counts.shrinks;
        plain.counts.segments.decrease(1);
        plain.run_end = nullptr;
        plain.counts.reserved_bytes.decrease(static_cast<std::int64_t>(size));
        if (plain.has_refused) plain.has_given_back = true;
      } else if (choice < 12 && !held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        const Held gone = held.back();
        held.pop_back();
        source.destroy(gone.physical, gone.pages * kPage);
        ++plain.counts.frees;
        const auto size = static_cast<std::int64_t>(gone.pages * kPage);
        plain.counts.reserved_bytes.current -= size;
        plain.never_mapped.erase(gone.physical.value) ? plain.counts.reserved_bytes.allocated -= size
                                                      : plain.counts.reserved_bytes.freed += size;
        if (plain.has_refused) plain.has_given_back = true;
      } else if (choice < 17 && !held.empty()) {
        const Held& one = held[random() % held.size()];
        const std::size_t at = random() % 60;
        source.map(space + at * kPage, one.pages * kPage, one.physical, 0);
        mapped[at] = one;
        ++plain.counts.maps;
        if (!plain.goes_on(true, space + at * kPage, one.pages * kPage)) ++plain.counts.growths;
        plain.never_mapped.erase(one.physical.value);
        plain.came_into_use();
      } else if (choice < 20 && !mapped.empty()) {
        const auto [at, one] = *mapped.begin();
        mapped.erase(mapped.begin());
        source.unmap(space + at * kPage, one.pages * kPage);
        ++plain.counts.unmaps;
        if (!plain.goes_on(false, space + at * kPage, one.pages * kPage)) ++plain.counts.shrinks;
      } else if (choice == 20) {
        source.wait(source.mark({}));
        ++plain.counts.waits;
      } else if (choice == 21) {
        source.synchronize();
        ++plain.counts.synchronizations;
      } else if (choice == 22) {
        plain.user_limit = random() % 2 == 0 ? 0 : (5 + random() % 20) * kPage;
        source.set_user_limit(plain.user_limit);
        if (random() % 20 == 0) {
          const std::size_t limit = (15 + random() % 20) * kPage;
          source.add_layer_limit(limit);
          plain.layer_limit = plain.layer_limit == 0 ? limit : std::min(limit, plain.layer_limit);
        }
        EXPECT_EQ(source.limit(), plain.limit());
        EXPECT_EQ(source.user_limit(), plain.user_limit);
      } else if (random() % 2 == 0) {
        source.reset_peak();
        plain.counts.reserved_bytes.reset_peak(), plain.counts.segments.reset_peak();
      } else {
        source.reset_accumulated();
        SourceCounters fresh;
        fresh.reserved_bytes = plain.counts.reserved_bytes, fresh.segments = plain.counts.segments;
        fresh.reserved_bytes.reset_accumulated(), fresh.segments.reset_accumulated();
        plain.counts = fresh;
      }
      const SourceCounters is = source.counters();
      expect_same(is.reserved_bytes, plain.counts.reserved_bytes, "reserved");
      expect_same(is.segments, plain.counts.segments, "segments");
      EXPECT_EQ(is.growths, plain.counts.growths);
      EXPECT_EQ(is.shrinks, plain.counts.shrinks);
      EXPECT_EQ(is.allocations, plain.counts.allocations);
      EXPECT_EQ(is.frees, plain.counts.frees);
      EXPECT_EQ(is.maps, plain.counts.maps);
      EXPECT_EQ(is.unmaps, plain.counts.unmaps);
      EXPECT_EQ(is.synchronizations, plain.counts.synchronizations);
      EXPECT_EQ(is.waits, plain.counts.waits);
      EXPECT_EQ(is.retries, plain.counts.retries);
      EXPECT_EQ(source.reserved_bytes(), static_cast<std::size_t>(is.reserved_bytes.current));
      EXPECT_EQ(source.peak_reserved_bytes(), static_cast<std::size_t>(is.reserved_bytes.peak));
      EXPECT_EQ(device.used_bytes(), source.reserved_bytes());
    }
  }
}

TEST(ObservedSourceRules, AMapGoesOnOnlyWithinOneOperation) {
  AddressOnlySource device;
  ObservedSource source(device);
  auto* const space = static_cast<char*>(source.reserve(8 * MiB));
  const Physical physical = source.create(2 * MiB);
  begin_operation();
  source.map(space, 2 * MiB, physical, 0);
  source.map(space + 2 * MiB, 2 * MiB, physical, 0);
  EXPECT_EQ(source.counters().growths, 1);
  begin_operation();
  source.map(space + 4 * MiB, 2 * MiB, physical, 0);
  EXPECT_EQ(source.counters().growths, 2);
}

TEST(ObservedSourceRules, OneWhoListensIsToldOfEachCallThatWasServed) {
  struct Told final : SourceListener {
    void add(const char* what, Address address, std::size_t bytes) {
      told.push_back(fmt::format("{} {} {}", what, static_cast<std::uint64_t>(address), bytes));
    }
    void acquired(const void* address, std::size_t bytes) noexcept override { add("acquired", address, bytes); }
    void releasing(const void* address, std::size_t bytes) noexcept override { add("releasing", address, bytes); }
    void mapped(const void* address, std::size_t bytes, Physical physical, std::size_t offset) noexcept override {
      add("mapped", address, bytes + physical.value + offset);
    }
    void unmapped(const void* address, std::size_t bytes) noexcept override { add("unmapped", address, bytes); }
    void address_reserved(const void* address, std::size_t bytes) noexcept override { add("reserved", address, bytes); }
    void address_unreserving(const void* address, std::size_t bytes) noexcept override {
      add("unreserving", address, bytes);
    }
    void created(Physical physical, std::size_t bytes) noexcept override { add("created", physical.value, bytes); }
    void destroying(Physical physical, std::size_t bytes) noexcept override {
      add("destroying", physical.value, bytes);
    }
    std::vector<std::string> told;
  };
  AddressOnlySource device;
  Moody moody(device);
  ObservedSource source(moody);
  Told told;
  source.set_listener(&told);
  void* const segment = source.acquire(1024);
  auto* const space = static_cast<char*>(source.reserve(8 * MiB));
  const Physical physical = source.create(4 * MiB);
  moody.mood = Moody::Mood::kRefuses;
  source.acquire(2048);
  source.create(2 * MiB);
  source.map(space + 2 * MiB, 2 * MiB, physical, 2 * MiB);
  source.unmap(space + 2 * MiB, 2 * MiB);
  source.destroy(physical, 4 * MiB);
  source.unreserve(space, 8 * MiB);
  source.release(segment, 1024);
  const auto text = [](const char* what, Address address, std::size_t bytes) {
    return fmt::format("{} {} {}", what, static_cast<std::uint64_t>(address), bytes);
  };
  EXPECT_THAT(
      told.told,
      ElementsAre(text("acquired", segment, 1024), text("reserved", space, 8 * MiB),
                  text("created", physical.value, 4 * MiB), text("mapped", space + 2 * MiB, 4 * MiB + physical.value),
                  text("unmapped", space + 2 * MiB, 2 * MiB), text("destroying", physical.value, 4 * MiB),
                  text("unreserving", space, 8 * MiB), text("releasing", segment, 1024)));
  source.set_listener(nullptr);
}

TEST(ObservedSourceRules, WhoListensToScopesIsToldOfTheDeviceCallsOfAStack) {
  struct Told final : scopes::Listener {
    void device_called(const scopes::DeviceCall& call) noexcept override {
      told.push_back(fmt::format("{} {} {}", call.name, call.bytes, call.reserved_bytes));
    }
    std::vector<std::string> told;
  };
  AddressOnlySource device;
  const auto stack = test::make_stack(device);
  ObservedSource owned(device), unowned(device);
  owned.set_owner(stack.get());
  Told told;
  scopes::add_listener(told, scopes::kWantsMemory);
  for (ObservedSource* source : {&owned, &unowned}) {
    void* const segment = source->acquire(1024);
    auto* const space = static_cast<char*>(source->reserve(4 * MiB));
    const Physical physical = source->create(2 * MiB);
    source->map(space, 2 * MiB, physical, 0);
    source->unmap(space, 2 * MiB);
    source->destroy(physical, 2 * MiB);
    source->release(segment, 1024);
    source->synchronize();
  }
  scopes::remove_listener(told);
  owned.release(owned.acquire(512), 512);
  EXPECT_THAT(told.told,
              ElementsAre("acquire 1024 1024", "create 2097152 2098176", "map 2097152 2098176", "unmap 2097152 2098176",
                          "destroy 2097152 1024", "release 1024 0", "synchronize 0 0"));
}

// ---- addresses only

TEST(AddressOnly, GivesUpToItsCapacityInWholeGrains) {
  for (const std::size_t grain : {512, 4096})
    for (const std::size_t capacity : {8192, 8191, 12288}) {
      AddressOnlySource source({.capacity_bytes = capacity, .acquire_granularity = grain});
      std::size_t used = 0;
      for (const std::size_t bytes : {1, 512, 513, 4095, 4096, 4097, 8191, 8192, 8193}) {
        const std::size_t rounded = (bytes + grain - 1) / grain * grain;
        void* const address = source.acquire(bytes);
        EXPECT_EQ(address != nullptr, bytes <= capacity && used + rounded <= capacity) << bytes << " of " << capacity;
        if (address == nullptr) continue;
        used += rounded;
        EXPECT_EQ(Address(address) % 512, 0u);
        EXPECT_EQ(source.used_bytes(), used);
        EXPECT_EQ(source.usage().free_bytes, capacity - used);
        EXPECT_EQ(source.usage().total_bytes, capacity);
      }
    }
  EXPECT_THROW(AddressOnlySource({.acquire_granularity = 0}), Error);
  EXPECT_THROW(AddressOnlySource({.acquire_granularity = 513}), Error);
  EXPECT_NO_THROW(AddressOnlySource({.acquire_granularity = 1024}));
}

TEST(AddressOnly, AReleasedSegmentIsGivenAgainToOneOfItsSizeTheLastFirst) {
  AddressOnlySource source;
  void* const a = source.acquire(1000);
  void* const b = source.acquire(1024);
  void* const c = source.acquire(1025);
  source.release(a, 1000);
  source.release(b, 1024);
  source.release(c, 1025);
  EXPECT_EQ(source.acquire(600), b);
  EXPECT_EQ(source.acquire(1024), a);
  EXPECT_NE(source.acquire(1024), c);
  EXPECT_EQ(source.acquire(1536), c);
}

TEST(AddressOnly, MapsWholePagesOfWhatThereIs) {
  AddressOnlySource source({.capacity_bytes = 8192, .page_bytes = 4096});
  EXPECT_TRUE(source.traits().virtual_memory);
  EXPECT_FALSE(AddressOnlySource({.page_bytes = 0}).traits().virtual_memory);
  source.acquire(100);  // so that what is reserved has to be aligned
  auto* const space = static_cast<char*>(source.reserve(8192));
  EXPECT_EQ(Address(space) % 4096, 0u);
  EXPECT_EQ(source.reserved_address_bytes(), 8192u);
  EXPECT_GE(Address(source.reserve(4096)), Address(space) + 8192);
  EXPECT_THROW(source.create(0), Error);
  EXPECT_THROW(source.create(4095), Error);
  EXPECT_THROW(source.create(4097), Error);
  const Physical physical = source.create(4096);
  EXPECT_TRUE(physical);
  EXPECT_FALSE(source.create(8192)) << "no more than there is";
  EXPECT_NO_THROW(source.map(space, 4096, physical, 0));
  EXPECT_THROW(source.map(space + 512, 4096, physical, 0), Error);
  EXPECT_THROW(source.map(space, 512, physical, 0), Error);
  EXPECT_THROW(source.map(space, 4096, physical, 512), Error);
  EXPECT_THROW(source.map(space, 4096, {}, 0), Error);
  source.destroy(physical, 4096);
  source.unreserve(space, 8192);
  EXPECT_EQ(source.used_bytes(), 512u);
  EXPECT_EQ(source.reserved_address_bytes(), 4096u);
}

TEST(AddressOnly, ATicketIsReachedOnceItsStreamOrAllHaveGotThere) {
  AddressOnlySource source({.manual_completion = true});
  const Ticket a = source.mark({1}), b = source.mark({1}), c = source.mark({2});
  EXPECT_FALSE(source.reached(a));
  source.wait(a);
  EXPECT_TRUE(source.reached(a));
  EXPECT_FALSE(source.reached(b));
  EXPECT_FALSE(source.reached(c));
  source.complete(StreamRef{1});
  EXPECT_TRUE(source.reached(b));
  EXPECT_FALSE(source.reached(c));
  source.wait(a);
  EXPECT_TRUE(source.reached(b)) << "time does not go back";
  source.synchronize();
  EXPECT_TRUE(source.reached(c));
  EXPECT_FALSE(source.reached(source.mark({2})));
  AddressOnlySource at_once;
  EXPECT_TRUE(at_once.reached(at_once.mark({7})));
}

// ---- the host's memory

TEST(HostMemoryRules, ChargesWhatTheSystemGivesAndGivesItBack) {
  constexpr std::size_t kCapacity = 16 * MiB;
  HostMemorySource source({.device = "cpu", .capacity_bytes = kCapacity});
  EXPECT_EQ(source.acquire(0), nullptr);
  EXPECT_EQ(source.acquire(~std::size_t{0} / 2 + 1), nullptr);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{512}, std::size_t{513}, MiB - 512, MiB - 1, MiB, MiB + 1, 2 * MiB, 5 * MiB + 1}) {
    const std::size_t step = bytes < MiB ? 512 : 4096, charged = (bytes + step - 1) / step * step;
    auto* const data = static_cast<unsigned char*>(source.acquire(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(Address(data) % 512, 0u);
    if (bytes >= 2 * MiB) {
      EXPECT_EQ(Address(data) % (2 * MiB), 0u) << "for large pages";
    }
    data[0] = data[bytes - 1] = 1;
    EXPECT_EQ(source.usage().free_bytes, kCapacity - charged) << bytes;
    EXPECT_EQ(source.usage().total_bytes, kCapacity);
    source.release(data, bytes);
    EXPECT_EQ(source.usage().free_bytes, kCapacity);
  }
  source.release(nullptr, 100);
  EXPECT_EQ(source.usage().free_bytes, kCapacity);
  void* const most = source.acquire(kCapacity);
  EXPECT_NE(most, nullptr);
  EXPECT_EQ(source.acquire(1), nullptr);
  source.release(most, kCapacity);
  EXPECT_EQ(source.acquire(kCapacity + 1), nullptr);
}

TEST(HostMemoryRules, OnePhysicalMemoryIsTheSameThroughEveryMapping) {
  constexpr std::size_t kPage = 64 * KiB;
  HostMemorySource source({.device = "cpu", .capacity_bytes = 4 * kPage, .page_bytes = kPage});
  EXPECT_EQ(source.traits().page_bytes, kPage);
  auto* const space = static_cast<unsigned char*>(source.reserve(4 * kPage));
  EXPECT_EQ(Address(space) % kPage, 0u);
  EXPECT_THROW(source.create(kPage - 4096), Error);
  EXPECT_THROW(source.create(0), Error);
  const Physical first = source.create(2 * kPage), second = source.create(kPage);
  EXPECT_FALSE(source.create(2 * kPage)) << "beyond the capacity";
  EXPECT_EQ(source.usage().free_bytes, kPage);
  source.map(space, 2 * kPage, first, 0);
  source.map(space + 2 * kPage, kPage, first, kPage);
  source.map(space + 3 * kPage, kPage, second, 0);
  space[kPage + 5] = 11;
  space[3 * kPage + 5] = 22;
  EXPECT_EQ(space[2 * kPage + 5], 11);
  EXPECT_EQ(space[5], 0);
  EXPECT_EQ(space[3 * kPage + 5], 22);
  source.unmap(space, 4 * kPage);
  source.map(space, kPage, second, 0);
  EXPECT_EQ(space[5], 22) << "unmapped memory keeps what is in it";
  source.unmap(space, kPage);
  source.destroy(second, kPage);
  source.destroy(first, 2 * kPage);
  source.destroy({}, kPage);
  EXPECT_EQ(source.usage().free_bytes, 4 * kPage);
  const Physical third = source.create(4 * kPage);
  source.map(space, 4 * kPage, third, 0);
  EXPECT_EQ(space[5], 0) << "fresh";
  source.unmap(space, 4 * kPage);
  source.destroy(third, 4 * kPage);
  source.unreserve(space, 4 * kPage);
  EXPECT_THROW(HostMemorySource({.page_bytes = 0}), ConfigError);
  EXPECT_THROW(HostMemorySource({.page_bytes = 4097}), ConfigError);
}

// ---- watched allocators

/// Told of everything.
struct EveryCall final : CallWatcher {
  void* begins(const CallFacts& facts) override {
    told.push_back("begins " + text_of(facts));
    return &told;
  }
  void ended(void* call, std::uintptr_t address) noexcept override {
    EXPECT_EQ(call, &told);
    told.push_back("ended" + std::string(address == 0 ? "" : fmt::format(" with {:#x}", address)));
  }
  void handed_out(const Block& block, const Request& request) override {
    told.push_back(fmt::format("handed out {} for {}", block.bytes, request.bytes));
  }
  void taken_back(const Block& block) noexcept override { told.push_back(fmt::format("taken back {}", block.bytes)); }
  void foreign_exception(const CallFacts& facts, const std::string& what) override {
    told.push_back("foreign in " + text_of(facts) + ": " + what);
  }
  std::vector<std::string> told;
};

/// Gives one address, or throws what it is told.
struct Thrower final : Allocator {
  explicit Thrower(int its_way) : way(its_way) {}
  void go() const {
    if (way == 1) throw Error("the project's");
    if (way == 2) throw std::runtime_error("a stranger's");
    if (way == 3) throw 42;
  }
  Block allocate(const Request& request) override {
    go();
    return {.data = reinterpret_cast<void*>(0x4000), .bytes = request.bytes + 1, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void record_use(const Block&, StreamRef) override { go(); }
  std::size_t trim(std::size_t) override { return go(), 0; }
  void walk(SegmentVisitor&) const override { go(); }
  void report(PolicyStats&) const override { go(); }
  void reset_stats(bool, bool) override { go(); }
  void check_invariants() const override { go(); }
  bool is_thread_safe() const override { return way == 0; }
  const int way;
};

TEST(WatchedAllocatorRules, EachCallIsToldWhenItBeginsAndHoweverItEnds) {
  for (int way = 0; way < 4; ++way) {
    EveryCall watcher;
    AllocatorInfo info{.name = "thrower", .create = [way](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                         return std::make_unique<Thrower>(way);
                       }};
    AddressOnlySource source;
    const Options options(info.options);
    auto allocator = watched(info, watcher).create({.source = source, .options = options});
    EXPECT_EQ(allocator->is_thread_safe(), way == 0);
    std::vector<std::string> wanted{"begins the constructor", "ended"};
    const auto expect = [&](const std::string& call, const auto& act, const std::vector<std::string>& inside = {},
                            const std::string& end = "ended") {
      try {
        act();
        EXPECT_EQ(way, 0);
      } catch (const Error&) {
        EXPECT_EQ(way, 1);
      } catch (const std::runtime_error&) {
        EXPECT_EQ(way, 2);
      } catch (int) {
        EXPECT_EQ(way, 3);
      }
      wanted.push_back("begins " + call);
      if (way == 0) wanted.insert(wanted.end(), inside.begin(), inside.end());
      if (way == 2) wanted.push_back("foreign in " + call + ": std::runtime_error (\"a stranger's\")");
      if (way == 3) wanted.push_back("foreign in " + call + ": int, which does not derive from std::exception");
      wanted.push_back(way == 0 ? end : "ended");
    };
    const Block block{.data = reinterpret_cast<void*>(0x4000), .bytes = 8};
    expect(
        "allocate(7 bytes, alignment 64, stream 2)", [&] { allocator->allocate({.bytes = 7, .stream = {2}}); },
        {"handed out 8 for 7"}, "ended with 0x4000");
    expect("record_use(0x4000, stream 5)", [&] { allocator->record_use(block, {5}); });
    expect("trim(9)", [&] { allocator->trim(9); });
    SegmentCollector seen;
    PolicyStats stats;
    expect("walk()", [&] { allocator->walk(seen); });
    expect("report()", [&] { allocator->report(stats); });
    expect("reset_stats()", [&] { allocator->reset_stats(true, true); });
    expect("check_invariants()", [&] { allocator->check_invariants(); });
    allocator->deallocate(block, {3});
    for (const char* told : {"taken back 8", "begins deallocate(0x4000, last used on stream 3)", "ended"})
      wanted.emplace_back(told);
    allocator.reset();
    for (const char* told : {"begins the destructor", "ended"}) wanted.emplace_back(told);
    EXPECT_EQ(watcher.told, wanted) << "way " << way;
  }
}

TEST(WatchedAllocatorRules, AFactoryThatMakesNothingStillMakesNothing) {
  const auto watcher = std::make_shared<EveryCall>();
  AllocatorInfo info{.name = "nothing",
                     .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> { return nullptr; }};
  AddressOnlySource source;
  const Options options(info.options);
  EXPECT_EQ(watched(info, *watcher).create({.source = source, .options = options}), nullptr);
  EXPECT_EQ(watched(info, watcher).create({.source = source, .options = options}), nullptr);
  EXPECT_THAT(watcher->told, ElementsAre("begins the constructor", "ended", "begins the constructor", "ended"));
}

// ---- labels

/// Exits with the number of the first rule that does not hold, in a process of its own: labels stay.
[[noreturn]] void fill_the_labels() {
  auto rule = [number = 0](bool holds) mutable {
    ++number;
    if (!holds) std::_Exit(number);
  };
  rule(label_name(0).empty() && label_name(65535).empty());
  std::size_t made = 0;
  std::string refusal;
  try {
    for (; made < 70'000; ++made) const LabelGuard label("a label of the test " + std::to_string(made));
  } catch (const Error& error) {
    refusal = error.what();
  }
  rule(refusal.find("65535 labels are in use") != std::string::npos);
  rule(made > 65'000 && made <= 65'535);
  rule(label_name(65535) == "a label of the test " + std::to_string(made - 1));
  rule(current_label() == 0);
  const LabelGuard known("a label of the test 5");
  rule(label_name(current_label()) == "a label of the test 5");
  std::_Exit(99);
}

TEST(LabelsDeathTest, AreSixtyFiveThousandAndWhatIsBeyondIsRefused) {
  EXPECT_EXIT(fill_the_labels(), ::testing::ExitedWithCode(99), "");
}

TEST(Purposes, BeyondTheLastAreUnknown) {
  EXPECT_EQ(name_of(static_cast<Purpose>(kPurposeCount)), "unknown");
  EXPECT_NE(name_of(static_cast<Purpose>(kPurposeCount - 1)), "unknown");
}

/// Has what every source must have, and nothing else.
class BareSource final : public MemorySource {
 public:
  SourceTraits traits() const override { return {.device = "plain"}; }
  SourceUsage usage() const override { return {}; }
  void* acquire(std::size_t) override { return nullptr; }
  void release(void*, std::size_t) noexcept override {}
  Ticket mark(StreamRef) override { return {}; }
  bool reached(Ticket) override { return true; }
  void wait(Ticket) override {}
  void synchronize() override {}
};

TEST(MemorySources, WithoutVirtualMemoryRefuseItAndNameAnAllocatorThatNeedsNone) {
  BareSource bare;
  AddressOnlySource addresses({.device = "plain", .page_bytes = 0});
  const auto refusal_of = [&](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "done";
  };
  for (MemorySource* const source : std::initializer_list<MemorySource*>{&bare, &addresses})
    for (const std::string& text : {refusal_of([&] { source->reserve(1); }), refusal_of([&] { source->create(1); }),
                                    refusal_of([&] { source->map(nullptr, 1, {}, 0); })})
      EXPECT_THAT(text, HasSubstr("plain has no virtual memory: use an allocator that needs none, such as 'caching'"));
}

}  // namespace
}  // namespace tenon
