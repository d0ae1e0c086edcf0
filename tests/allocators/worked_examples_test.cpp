// The worked examples W1 to W31 of PyTorch's allocator: requests, and every figure after each step. (W32 is about
// pinned host memory, in memory/pinned_cache_test.cpp; W29's history in device/caching_history_test.cpp.)
// Long: one numbered list.
#include <caching/caching_allocator.h>
#include <caching/rounding.h>
#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {
namespace {

using caching::CachingAllocator;
using caching::Settings;

constexpr std::size_t operator""_MiB(unsigned long long n) { return n * MiB; }

/// Counts as PyTorch does: a segment is one allocation, and so is one mapping of adjacent pages in one go.
class Counted final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override {
    void* address = upstream_.acquire(bytes);
    allocations += address != nullptr;
    return address;
  }
  void release(void* address, std::size_t bytes) noexcept override {
    ++frees;
    upstream_.release(address, bytes);
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    ++frees;
    upstream_.unmap(address, bytes);
  }
  int allocations = 0;
  int frees = 0;
};

/// One device with one allocator, driven by names: get("A", bytes), put("A").
class Trial {
 public:
  explicit Trial(Settings settings = {}, std::size_t capacity = 0, bool manual = false)
      : device({.capacity_bytes = capacity, .manual_completion = manual}), source(device), policy(source, settings) {}

  ~Trial() {
    for (auto& [name, block] : blocks_) policy.deallocate(block, block.request.stream);
  }

  std::size_t get(const std::string& name, std::size_t bytes, std::uint64_t stream = 0) {
    blocks_[name] = policy.allocate({.bytes = bytes, .stream = {stream}});
    policy.check_invariants();
    return blocks_[name].bytes;
  }
  bool fails(std::size_t bytes, std::uint64_t stream = 0) {
    try {
      const Block block = policy.allocate({.bytes = bytes, .stream = {stream}});
      policy.deallocate(block, block.request.stream);
      return false;
    } catch (const OutOfMemory&) {
      policy.check_invariants();
      return true;
    }
  }
  void put(const std::string& name) {
    policy.deallocate(blocks_.at(name), blocks_.at(name).request.stream);
    blocks_.erase(name);
    policy.check_invariants();
  }
  std::size_t at(const std::string& name) const { return reinterpret_cast<std::size_t>(blocks_.at(name).data); }
  const Block& block(const std::string& name) const { return blocks_.at(name); }
  PolicyStats stats() const {
    PolicyStats stats;
    policy.report(stats);
    return stats;
  }
  std::int64_t allocated() const { return stats().allocated_bytes[0].current; }
  std::int64_t reserved() const { return stats().reserved_bytes[0].current; }
  std::int64_t segments() const { return stats().segment[0].current; }
  std::int64_t splits() const { return stats().inactive_split[0].current; }
  std::int64_t split_bytes() const { return stats().inactive_split_bytes[0].current; }

  AddressOnlySource device;
  Counted source;
  CachingAllocator policy;

 private:
  std::map<std::string, Block> blocks_;
};

Settings expandable() { return {.expandable = true}; }

struct Single {
  const char* name;
  std::size_t request;
  std::int64_t allocated, reserved, splits, split_bytes;
};

TEST(WorkedExamples, W1ToW6SingleRequests) {
  const Single rows[] = {
      {"W1", 4000000, 4000256, 20971520, 1, 16971264},
      {"W2a", 1, 512, 2097152, 1, 2096640},
      {"W2a", 511, 512, 2097152, 1, 2096640},
      {"W2a", 512, 512, 2097152, 1, 2096640},
      {"W2b", 513, 1024, 2097152, 1, 2096128},
      {"W2b", 1000, 1024, 2097152, 1, 2096128},
      {"W3", 1048576, 1048576, 2097152, 1, 1048576},
      {"W4", 1048577, 1049088, 20971520, 1, 19922432},
      {"W5a", 10485248, 10485248, 20971520, 1, 10486272},
      {"W5b", 10485249, 10485760, 10485760, 0, 0},
      {"W5b", 10485760, 10485760, 10485760, 0, 0},
      {"W5c", 10485761, 10486272, 12582912, 1, 2096640},
      {"W6a", 11534336, 12582912, 12582912, 0, 0},
      {"W6b", 11533824, 11533824, 12582912, 1, 1049088},
      {"W6c", 104857601, 104858112, 106954752, 1, 2096640},
  };
  for (const Single& row : rows) {
    SCOPED_TRACE(row.name);
    Trial trial;
    trial.get("A", row.request);
    EXPECT_EQ(trial.allocated(), row.allocated);
    EXPECT_EQ(trial.reserved(), row.reserved);
    EXPECT_EQ(trial.segments(), 1);
    EXPECT_EQ(trial.splits(), row.splits);
    EXPECT_EQ(trial.split_bytes(), row.split_bytes);
    EXPECT_EQ(trial.stats().requested_bytes[0].current, static_cast<std::int64_t>(row.request));
  }
}

TEST(WorkedExamples, W1ToW6WithExpandableSegments) {
  const std::pair<std::size_t, std::pair<std::int64_t, std::int64_t>> rows[] = {{1, {512, 2097152}},
                                                                                {1_MiB, {1048576, 2097152}},
                                                                                {1_MiB + 1, {1049088, 20971520}},
                                                                                {4000000, {4000256, 20971520}},
                                                                                {10_MiB, {10485760, 20971520}},
                                                                                {20_MiB, {20971520, 20971520}},
                                                                                {20_MiB + 1, {20972032, 41943040}},
                                                                                {100_MiB + 1, {104858112, 125829120}}};
  for (const auto& [request, figures] : rows) {
    Trial trial(expandable());
    trial.get("A", request);
    EXPECT_EQ(trial.allocated(), figures.first) << request;
    EXPECT_EQ(trial.reserved(), figures.second) << request;
    EXPECT_EQ(trial.segments(), 0);
    EXPECT_EQ(trial.splits(), 0);
  }
}

TEST(WorkedExamples, W7ZeroBytesAreNothing) {
  AddressOnlySource device;
  const AllocatorInfo info{.name = "caching",
                           .options = caching::option_schema(false),
                           .create = [](const AllocatorContext& c) { return caching::make_allocator(c, false); }};
  const auto stack = AllocatorStack::make(device, {.policy = info, .options = Options(info.options), .layers = {}});
  const Block block = stack->allocate({.bytes = 0});
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.bytes, 0u);
  stack->deallocate(block);
  const MemoryStats stats = stack->stats();
  EXPECT_EQ(stats.allocations.allocated, 0);
  EXPECT_EQ(stats.policy.allocation[0].allocated, 0);
  EXPECT_EQ(stats.policy.segment[0].allocated, 0);
  EXPECT_EQ(device.used_bytes(), 0u);
}

TEST(WorkedExamples, W8RoundingWithDivisions) {
  const std::uint32_t divisions[] = {1, 2, 4, 8, 16, 64};
  const std::size_t rows[][7] = {{513, 1024, 1024, 1024, 1024, 1024, 1024},
                                 {1200, 1536, 1536, 1536, 1536, 1536, 1536},
                                 {2049, 2560, 3072, 2560, 2560, 2560, 2560},
                                 {5000, 5120, 6144, 5120, 5120, 5120, 5120},
                                 {921600, 921600, 1048576, 1048576, 983040, 950272, 925696},
                                 {1048577, 1049088, 1572864, 1310720, 1179648, 1114112, 1064960},
                                 {3145729, 3146240, 4194304, 3670016, 3407872, 3276800, 3178496},
                                 {10485761, 10486272, 12582912, 12582912, 11534336, 11010048, 10616832},
                                 {88080384, 88080384, 100663296, 100663296, 92274688, 88080384, 88080384},
                                 {734003200, 734003200, 805306368, 805306368, 738197504, 738197504, 738197504}};
  for (const auto& row : rows) {
    for (int column = 0; column < 6; ++column) {
      Settings settings;
      settings.roundup_divisions.fill(divisions[column]);
      EXPECT_EQ(caching::round_size(settings, row[0]), row[column + 1]) << row[0] << " by " << divisions[column];
    }
  }
  Settings old{.compat = caching::Compat::k1_13};
  old.roundup_divisions.fill(1);
  EXPECT_EQ(caching::round_size(old, 513), 513u);
  EXPECT_EQ(caching::round_size(old, 1200), 1200u);
}

TEST(WorkedExamples, W9SmallBlocksFillTheirSegment) {
  Trial trial;
  for (int i = 0; i < 2048; ++i) trial.get(std::to_string(i), 1000);
  EXPECT_EQ(trial.allocated(), 2097152);
  EXPECT_EQ(trial.reserved(), 2097152);
  EXPECT_EQ(trial.splits(), 0);
  trial.get("2048", 1000);
  EXPECT_EQ(trial.allocated(), 2098176);
  EXPECT_EQ(trial.reserved(), 4194304);
  EXPECT_EQ(trial.split_bytes(), 2096128);
  for (int i = 0; i <= 2048; ++i) trial.put(std::to_string(i));
  EXPECT_EQ(trial.allocated(), 0);
  EXPECT_EQ(trial.reserved(), 4194304);
  EXPECT_EQ(trial.splits(), 0);
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 0);
  EXPECT_EQ(trial.source.allocations, 2);
  EXPECT_EQ(trial.source.frees, 2);
  EXPECT_EQ(trial.stats().synchronizations, 1);
}

TEST(WorkedExamples, W10RequestsOfOneMebibyte) {
  for (const bool in_a_pool : {false, true}) {
    Trial trial;
    if (in_a_pool) trial.policy.begin_pool(7, {});
    trial.get("A", 1_MiB);
    EXPECT_EQ(trial.split_bytes(), 1048576);
    trial.get("B", 1_MiB);
    EXPECT_EQ(trial.reserved(), 2097152);
    EXPECT_EQ(trial.splits(), 0);
    trial.get("C", 1_MiB);
    EXPECT_EQ(trial.segments(), 2);
    if (in_a_pool) trial.policy.end_pool(7);
  }
}

TEST(WorkedExamples, W11ReuseInsideASegment) {
  Trial trial;
  const auto expect = [&](std::int64_t allocated, std::int64_t splits, std::int64_t split_bytes) {
    EXPECT_EQ(trial.allocated(), allocated);
    EXPECT_EQ(trial.splits(), splits);
    EXPECT_EQ(trial.split_bytes(), split_bytes);
  };
  trial.get("A", 4000000);
  const std::size_t base = trial.at("A");
  expect(4000256, 1, 16971264);
  trial.get("B", 4000000);
  EXPECT_EQ(trial.at("B"), base + 4000256);
  expect(8000512, 1, 12971008);
  trial.put("A");
  expect(4000256, 2, 16971264);
  trial.get("C", 5000000);
  EXPECT_EQ(trial.at("C"), base + 8000512);
  expect(9000448, 2, 11971072);
  trial.put("B");
  expect(5000192, 2, 15971328);
  EXPECT_EQ(trial.get("D", 8000000), 8000512u);
  EXPECT_EQ(trial.at("D"), base);
  expect(13000704, 1, 7970816);
  trial.policy.trim(0);
  expect(13000704, 1, 7970816);
  EXPECT_EQ(trial.stats().synchronizations, 1);
  trial.put("C");
  trial.put("D");
  expect(0, 0, 0);
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 0);
  EXPECT_EQ(trial.source.frees, 1);
  EXPECT_EQ(trial.stats().synchronizations, 2);
}

TEST(WorkedExamples, W12BestFit) {
  Trial trial;
  for (int i = 0; i < 7; ++i) trial.get(std::to_string(i), 3_MiB);
  EXPECT_EQ(trial.reserved(), 41943040);
  EXPECT_EQ(trial.split_bytes(), 19922944);
  for (const char* name : {"0", "2", "4"}) {
    const std::size_t first = trial.at("1") - 3_MiB;
    trial.put(name);
    if (name == std::string("4")) {
      EXPECT_EQ(trial.splits(), 5);
      EXPECT_EQ(trial.split_bytes(), 29360128);
      trial.get("X", 3_MiB + 512);
      EXPECT_EQ(trial.at("X"), trial.at("6") + 3_MiB);
      EXPECT_EQ(trial.split_bytes(), 26213888);
      trial.get("Y", 2_MiB);
      EXPECT_EQ(trial.at("Y"), first + 18_MiB);
      EXPECT_EQ(trial.splits(), 4);
      EXPECT_EQ(trial.split_bytes(), 24116736);
    }
  }
}

TEST(WorkedExamples, W13OfEqualBlocksTheOldestSegmentsGoesFirst) {
  Trial trial;
  trial.get("X", 20_MiB);
  trial.get("Y", 24_MiB);
  trial.get("Z", 20_MiB);
  const std::size_t x = trial.at("X"), y = trial.at("Y"), z = trial.at("Z");
  for (const char* name : {"Z", "Y", "X"}) trial.put(name);
  trial.get("1", 20_MiB);
  trial.get("2", 20_MiB);
  trial.get("3", 21_MiB);
  EXPECT_EQ(trial.at("1"), x);
  EXPECT_EQ(trial.at("2"), z);
  EXPECT_EQ(trial.at("3"), y);
  EXPECT_EQ(trial.allocated(), 63963136);
  EXPECT_EQ(trial.reserved(), 67108864);
  EXPECT_EQ(trial.split_bytes(), 3145728);
}

/// Hands out falling addresses, so that the oldest segment has the highest.
class Falling final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override { return reinterpret_cast<void*>(next_ -= bytes); }
  void release(void*, std::size_t) noexcept override {}

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 46;
};

TEST(WorkedExamples, W13OldReleasesTakeTheLowestAddress) {
  for (const auto compat : {caching::Compat::k1_13, caching::Compat::kCurrent}) {
    AddressOnlySource device;
    Falling source(device);
    CachingAllocator policy(source, {.compat = compat});
    const Block x = policy.allocate({.bytes = 20_MiB});
    const Block z = policy.allocate({.bytes = 20_MiB});
    policy.deallocate(z, {});
    policy.deallocate(x, {});
    const Block next = policy.allocate({.bytes = 20_MiB});
    EXPECT_EQ(next.data, compat == caching::Compat::k1_13 ? z.data : x.data);
    policy.deallocate(next, {});
  }
}

TEST(WorkedExamples, W14ABlockThatIsNotWorthSplittingIsHandedOutWhole) {
  Trial trial;
  trial.get("A", 12_MiB);
  trial.put("A");
  EXPECT_EQ(trial.get("A", 11_MiB), 12582912u);
  trial.put("A");
  EXPECT_EQ(trial.get("A", 11533824), 11533824u);
  EXPECT_EQ(trial.split_bytes(), 1049088);
  EXPECT_EQ(trial.segments(), 1);
}

TEST(WorkedExamples, W15FlushAndRetryThenOutOfMemory) {
  Trial trial({}, 100_MiB);
  trial.get("A", 40_MiB);
  trial.get("B", 40_MiB);
  trial.put("A");
  trial.put("B");
  trial.get("C", 60_MiB);
  EXPECT_EQ(trial.reserved(), 62914560);
  EXPECT_EQ(trial.source.allocations, 3);
  EXPECT_EQ(trial.source.frees, 2);
  EXPECT_EQ(trial.stats().retries, 1);
  EXPECT_TRUE(trial.fails(60_MiB));
  EXPECT_EQ(trial.stats().retries, 2);
  EXPECT_EQ(trial.stats().synchronizations, 2);
  EXPECT_EQ(trial.allocated(), 62914560);
  trial.get("E", 40_MiB);
  EXPECT_EQ(trial.reserved(), 104857600);
}

TEST(WorkedExamples, W16AFlushFreesEveryUnsplitSegment) {
  Trial trial({}, 100_MiB);
  for (int i = 0; i < 10; ++i) trial.get(std::to_string(i), 10_MiB);
  for (int i = 0; i < 10; i += 2) trial.put(std::to_string(i));
  trial.get("X", 20_MiB);
  EXPECT_EQ(trial.reserved(), 73400320);
  EXPECT_EQ(trial.segments(), 6);
  EXPECT_EQ(trial.source.allocations, 11);
  EXPECT_EQ(trial.source.frees, 5);
  for (int i = 1; i < 10; i += 2) trial.put(std::to_string(i));
  trial.get("Y", 50_MiB);
  EXPECT_EQ(trial.reserved(), 73400320);
  EXPECT_EQ(trial.source.frees, 10);
  EXPECT_EQ(trial.stats().retries, 2);
}

TEST(WorkedExamples, W17ASplitPinsItsSegment) {
  Trial trial({}, 100_MiB);
  trial.get("A", 60_MiB);
  trial.put("A");
  trial.get("B", 20_MiB);
  EXPECT_EQ(trial.split_bytes(), 41943040);
  EXPECT_TRUE(trial.fails(50_MiB));
  EXPECT_EQ(trial.reserved(), 62914560);
  EXPECT_EQ(trial.allocated(), 20971520);
  trial.put("B");
  trial.get("C", 50_MiB);
  EXPECT_EQ(trial.split_bytes(), 10485760);
  EXPECT_EQ(trial.source.allocations, 1);
}

TEST(WorkedExamples, W18SmallAgainstLarge) {
  Trial tight({}, 19_MiB);
  EXPECT_TRUE(tight.fails(1536 * KiB));
  EXPECT_EQ(tight.source.allocations, 0);
  EXPECT_EQ(tight.stats().retries, 1);
  Trial trial({}, 10_MiB);
  trial.get("A", 512 * KiB);
  trial.put("A");
  trial.get("B", 10_MiB);
  EXPECT_EQ(trial.reserved(), 10485760);
  EXPECT_EQ(trial.source.frees, 1);
}

TEST(WorkedExamples, W19StreamsDoNotShare) {
  Trial trial;
  trial.get("A", 30_MiB, 0);
  const std::size_t a = trial.at("A");
  trial.put("A");
  trial.get("B", 30_MiB, 1);
  EXPECT_EQ(trial.reserved(), 62914560);
  trial.put("B");
  trial.get("C", 30_MiB, 0);
  EXPECT_EQ(trial.at("C"), a);
  EXPECT_EQ(trial.source.allocations, 2);
}

TEST(WorkedExamples, W20ABlockUsedElsewhereWaitsForThatStream) {
  Trial trial({}, 0, true);
  trial.get("A", 30_MiB, 0);
  const std::size_t a = trial.at("A");
  trial.policy.record_use(trial.block("A"), {1});
  trial.put("A");
  EXPECT_EQ(trial.allocated(), 0);
  EXPECT_EQ(trial.stats().active_bytes[0].current, 31457280);
  EXPECT_EQ(trial.stats().requested_bytes[0].current, 31457280);
  trial.get("B", 30_MiB, 0);
  EXPECT_EQ(trial.reserved(), 62914560);
  trial.device.complete(StreamRef{1});
  trial.get("C", 30_MiB, 0);
  EXPECT_EQ(trial.at("C"), a);
  EXPECT_EQ(trial.allocated(), 62914560);
  EXPECT_EQ(trial.reserved(), 62914560);
}

TEST(WorkedExamples, W21OversizeAcceptance) {
  Trial trial({.max_split_bytes = 40_MiB}, 200_MiB);
  const auto oversize = [&](std::int64_t allocations, std::int64_t segments) {
    EXPECT_EQ(trial.stats().oversize_allocations.current, allocations);
    EXPECT_EQ(trial.stats().oversize_segments.current, segments);
  };
  trial.get("A", 60_MiB);
  oversize(1, 1);
  trial.put("A");
  trial.get("B", 30_MiB);
  EXPECT_EQ(trial.reserved(), 94371840);
  trial.get("C", 50_MiB);
  EXPECT_EQ(trial.allocated(), 94371840);
  trial.put("C");
  EXPECT_EQ(trial.get("D", 39_MiB), 40_MiB);
  EXPECT_EQ(trial.reserved(), 136314880);
  oversize(1, 2);
  EXPECT_EQ(trial.get("E", 41_MiB), 60_MiB);
  trial.put("E");
  trial.get("F", 40_MiB);
  EXPECT_EQ(trial.reserved(), 178257920);
  oversize(2, 3);
  EXPECT_EQ(trial.get("G", 40_MiB + 512), 60_MiB);
  EXPECT_EQ(trial.allocated(), 178257920);
  oversize(3, 3);
}

TEST(WorkedExamples, W22OversizedBlocksAreFreedBeforeTheFlush) {
  Trial one({.max_split_bytes = 40_MiB}, 200_MiB);
  one.get("A", 100_MiB);
  one.get("B", 60_MiB);
  one.put("A");
  one.put("B");
  one.get("C", 30_MiB);
  one.get("D", 30_MiB);
  EXPECT_EQ(one.reserved(), 167772160);
  EXPECT_EQ(one.source.frees, 1);
  EXPECT_EQ(one.stats().retries, 0);
  Trial several({.max_split_bytes = 40_MiB}, 200_MiB);
  for (const auto& [name, bytes] : {std::pair{"A", 60_MiB}, {"B", 50_MiB}, {"C", 70_MiB}}) several.get(name, bytes);
  for (const char* name : {"A", "B", "C"}) several.put(name);
  several.get("D", 110_MiB);
  EXPECT_EQ(several.reserved(), 167772160);
  EXPECT_EQ(several.source.frees, 2);
  EXPECT_EQ(several.stats().retries, 0);
}

TEST(WorkedExamples, W23GrowingRequests) {
  Trial grows(expandable());
  Trial ordinary;
  const std::int64_t expected[] = {146800640, 167772160, 167772160, 188743680};
  const std::int64_t expected_ordinary[] = {134217728, 285212672, 452984832, 637534208};
  for (int round = 0; round < 4; ++round) {
    for (Trial* trial : {&grows, &ordinary}) {
      for (int i = 0; i < 4; ++i) trial->get(std::to_string(i), static_cast<std::size_t>(8 + round) * 4_MiB);
      for (int i = 0; i < 4; ++i) trial->put(std::to_string(i));
    }
    EXPECT_EQ(grows.reserved(), expected[round]) << "round " << round;
    EXPECT_EQ(ordinary.reserved(), expected_ordinary[round]) << "round " << round;
  }
}

TEST(WorkedExamples, W23bLayoutOfAnExpandableSegment) {
  Trial trial(expandable());
  trial.get("A", 30_MiB);
  const std::size_t base = trial.at("A");
  EXPECT_EQ(trial.reserved(), 41943040);
  trial.get("B", 30_MiB);
  EXPECT_EQ(trial.reserved(), 62914560);
  trial.put("A");
  trial.get("C", 35_MiB);
  EXPECT_EQ(trial.at("C"), base + 60_MiB);
  EXPECT_EQ(trial.reserved(), 104857600);
  trial.put("B");
  trial.get("D", 45_MiB);
  EXPECT_EQ(trial.at("D"), base);
  EXPECT_EQ(trial.reserved(), 104857600);
  trial.put("C");
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 62914560);
  EXPECT_EQ(trial.source.frees, 1);
  trial.put("D");
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 0);
  EXPECT_EQ(trial.device.reserved_address_bytes(), 0u);
  EXPECT_EQ(trial.source.frees, 2);
}

TEST(WorkedExamples, W23cPartsOfASegmentGoAndComeBack) {
  Trial trial(expandable());
  trial.get("A", 25_MiB);
  const std::size_t base = trial.at("A");
  trial.get("B", 5_MiB);
  trial.get("C", 50_MiB);
  trial.put("A");
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 62914560);
  trial.get("D", 22_MiB);
  EXPECT_EQ(trial.at("D"), base);
  EXPECT_EQ(trial.reserved(), 83886080);
  trial.get("E", 2_MiB);
  EXPECT_EQ(trial.at("E"), base + 22_MiB);
  trial.put("C");
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 41943040);
  trial.get("F", 30_MiB);
  EXPECT_EQ(trial.at("F"), base + 30_MiB);
  EXPECT_EQ(trial.reserved(), 62914560);
}

TEST(WorkedExamples, W24AMappingThatFailsHalfWay) {
  for (const std::size_t capacity : {100_MiB, 90_MiB}) {
    Trial trial(expandable(), capacity);
    trial.get("A", 20_MiB);
    trial.get("B", 20_MiB);
    trial.put("A");
    trial.policy.trim(0);
    trial.put("B");
    if (capacity == 100_MiB) {
      trial.get("C", 90_MiB);
      EXPECT_EQ(trial.reserved(), 104857600);
      EXPECT_EQ(trial.stats().retries, 0);
    } else {
      EXPECT_TRUE(trial.fails(90_MiB));
      EXPECT_EQ(trial.reserved(), 0);
      EXPECT_EQ(trial.stats().retries, 1);
      EXPECT_EQ(trial.stats().synchronizations, 2);
      EXPECT_GT(trial.device.reserved_address_bytes(), 0u);
    }
  }
}

TEST(WorkedExamples, W25ALimitIsRefusedWithoutAskingTheDevice) {
  Trial trial({}, 1000_MiB);
  trial.policy.set_memory_fraction(0.5);
  trial.get("A", 300_MiB);
  trial.get("B", 200_MiB);
  EXPECT_TRUE(trial.fails(1_MiB));
  EXPECT_EQ(trial.source.allocations, 2);
  EXPECT_EQ(trial.stats().retries, 1);
  trial.put("B");
  trial.get("C", 1_MiB);
  EXPECT_EQ(trial.allocated(), 315621376);
  EXPECT_EQ(trial.reserved(), 316669952);
  EXPECT_EQ(trial.stats().retries, 2);
}

TEST(WorkedExamples, W26GarbageCollectionFreesWhatIsOlderThanAverage) {
  for (const bool aged : {false, true}) {
    Trial trial({.garbage_collection_threshold = 0.6, .memory_fraction = 0.5}, 1000_MiB);
    trial.get("A", 100_MiB);
    trial.get("B", 110_MiB);
    trial.get("C", 120_MiB);
    for (const char* name : {"A", "B", "C"}) trial.put(name);
    for (int i = 0; aged && i < 2; ++i) {
      trial.get("A", 100_MiB);
      trial.put("A");
    }
    trial.get("D", 130_MiB);
    EXPECT_EQ(trial.reserved(), aged ? 241172480 : 136314880);
    EXPECT_EQ(trial.source.frees, aged ? 2 : 3);
    EXPECT_EQ(trial.stats().retries, 0);
  }
}

TEST(WorkedExamples, W27TheTailThatCanGrowIsUsedLast) {
  Trial trial(expandable());
  trial.get("A", 50_MiB);
  const std::size_t base = trial.at("A");
  trial.get("B", 10_MiB);
  trial.get("C", 40_MiB);
  trial.put("A");
  trial.put("C");
  trial.get("D", 35_MiB);
  EXPECT_EQ(trial.at("D"), base);
}

TEST(WorkedExamples, W28PagesMoveBetweenStreamsThroughTheDevice) {
  Trial trial(expandable(), 100_MiB);
  trial.get("A", 60_MiB, 0);
  trial.put("A");
  trial.get("B", 60_MiB, 1);
  EXPECT_EQ(trial.reserved(), 62914560);
  EXPECT_EQ(trial.stats().retries, 1);
  Trial fragmented(expandable(), 100_MiB);
  fragmented.get("A", 50_MiB);
  const std::size_t base = fragmented.at("A");
  fragmented.get("B", 45_MiB);
  fragmented.put("A");
  fragmented.get("C", 41_MiB);
  EXPECT_EQ(fragmented.at("C"), base);
  EXPECT_TRUE(fragmented.fails(10_MiB));
  EXPECT_EQ(fragmented.reserved(), 104857600);
}

TEST(WorkedExamples, W28bBothKindsOfSegmentsInOneAllocator) {
  Trial trial(expandable());
  trial.get("A", 30_MiB);
  trial.put("A");
  trial.policy.set_expandable(false);
  trial.get("B", 30_MiB);
  EXPECT_EQ(trial.reserved(), 73400320);
  EXPECT_EQ(trial.segments(), 1);
  const std::size_t b = trial.at("B");
  trial.put("B");
  trial.policy.set_expandable(true);
  trial.get("C", 30_MiB);
  EXPECT_EQ(trial.at("C"), b);
}

TEST(WorkedExamples, W28cAdjacentPagesAreUnmappedAtOnce) {
  Trial trial(expandable());
  for (const char* name : {"A", "B", "C"}) trial.get(name, 1_MiB);
  EXPECT_EQ(trial.reserved(), 4194304);
  for (const char* name : {"A", "B", "C"}) trial.put(name);
  trial.policy.trim(0);
  EXPECT_EQ(trial.reserved(), 0);
  EXPECT_EQ(trial.source.frees, 1);
}

TEST(WorkedExamples, W29StatisticsAfterTwoRequests) {
  Trial trial;
  trial.get("A", 1000);
  trial.get("B", 2_MiB);
  EXPECT_EQ(trial.allocated(), 2098176);
  EXPECT_EQ(trial.reserved(), 23068672);
  EXPECT_EQ(trial.splits(), 2);
  EXPECT_EQ(trial.split_bytes(), 20970496);
}

TEST(WorkedExamples, W30WhatCameAndWhatWent) {
  Trial twice;
  twice.get("A", 4000000);
  twice.put("A");
  twice.get("A", 4000000);
  const auto expect = [](const Stat& stat, std::int64_t current, std::int64_t peak, std::int64_t came,
                         std::int64_t went) {
    EXPECT_EQ(stat.current, current);
    EXPECT_EQ(stat.peak, peak);
    EXPECT_EQ(stat.allocated, came);
    EXPECT_EQ(stat.freed, went);
  };
  const PolicyStats stats = twice.stats();
  expect(stats.allocation[0], 1, 1, 2, 1);
  expect(stats.allocated_bytes[0], 4000256, 4000256, 8000512, 4000256);
  expect(stats.segment[0], 1, 1, 1, 0);
  expect(stats.reserved_bytes[0], 20971520, 20971520, 20971520, 0);
  expect(stats.inactive_split[0], 1, 1, 2, 1);
  expect(stats.inactive_split_bytes[0], 16971264, 16971264, 33942528, 16971264);
  expect(stats.requested_bytes[0], 4000000, 4000000, 8000000, 4000000);
}

TEST(WorkedExamples, W31OversizeRulesMakeAnExpandableSegmentGrowEveryCycle) {
  Trial trial({.expandable = true, .max_split_bytes = 128_MiB}, 16 * GiB);
  trial.get("base", 64_MiB);
  std::vector<std::int64_t> allocated, reserved;
  for (int cycle = 0; cycle <= 100; ++cycle) {
    trial.get("A", 91_MiB);
    trial.get("B", 45_MiB + 512 * KiB);
    trial.get("kept" + std::to_string(cycle), 2_MiB);
    trial.put("A");
    trial.put("B");
    if (cycle % 20 != 0) continue;
    allocated.push_back(trial.allocated() >> 20);
    reserved.push_back(trial.reserved() >> 20);
  }
  EXPECT_EQ(allocated, (std::vector<std::int64_t>{66, 106, 146, 186, 226, 266}));
  EXPECT_EQ(reserved, (std::vector<std::int64_t>{220, 2980, 5760, 8520, 11300, 14060}));
}

TEST(WorkedExamples, HugeRequestsAreRefusedBeforeAnythingElse) {
  Trial trial;
  EXPECT_TRUE(trial.fails(std::size_t{1} << 60));
  EXPECT_EQ(trial.stats().retries, 0);
}

}  // namespace
}  // namespace tenon
