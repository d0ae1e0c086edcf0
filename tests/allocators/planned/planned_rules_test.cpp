// The rules of `planned`: what it takes from a device and when it gives it back, where requests go that its plan does
// not know, when a plan is dropped, and what it says.
// Long: the rules are of one policy, and share its desk.
#include <planned/planned_allocator.h>
#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/refusal.h>
#include <support/scratch_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::planned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kPage = 2 * MiB;

/// Writes down what it is asked for, has addresses for so much at once, and fails where it is told so.
class AskedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override {
    asked.push_back(bytes);
    return bytes > most_at_once ? nullptr : upstream_.acquire(bytes);
  }
  void* reserve(std::size_t bytes) override {
    asked.push_back(bytes);
    return bytes > most_at_once ? nullptr : upstream_.reserve(bytes);
  }
  Ticket mark(StreamRef stream) override {
    if (fails) throw Error("lost");
    return upstream_.mark(stream);
  }
  bool reached(Ticket ticket) override {
    if (fails) throw Error("lost");
    return upstream_.reached(ticket);
  }
  void synchronize() override {
    ++synchronized;
    if (fails) throw Error("lost");
    upstream_.synchronize();
  }
  std::vector<std::size_t> asked;
  std::size_t most_at_once = SIZE_MAX;
  bool fails = false;
  int synchronized = 0;
};

/// An allocator on such a device.
struct Desk {
  explicit Desk(AddressOnlySource::Config config, std::vector<std::pair<std::string, std::string>> set = {})
      : device(std::move(config)), source(device) {
    Options options(PlannedAllocator::options());
    for (const auto& [name, value] : set) options.set_text(name, value);
    planned = std::make_unique<PlannedAllocator>(AllocatorContext{.source = source, .options = options});
  }
  ~Desk() {
    if (planned) planned->check_invariants();
    planned.reset();
    EXPECT_EQ(device.used_bytes(), 0u);
    EXPECT_EQ(device.reserved_address_bytes(), 0u);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  Block get(std::size_t bytes, std::uint64_t stream = 0, std::size_t alignment = kDefaultAlignment) {
    return planned->allocate({.bytes = bytes, .alignment = alignment, .stream = {stream}});
  }
  void put(const Block& block) { planned->deallocate(block, block.request.stream); }
  PolicyStats stats() const {
    PolicyStats stats;
    planned->report(stats);
    return stats;
  }

  AddressOnlySource device;
  AskedSource source;
  std::unique_ptr<PlannedAllocator> planned;
};

packing::Plan plan_of(std::vector<packing::PlannedBlock> blocks, std::uint64_t lower_bound = 0) {
  packing::Plan plan{.name = "a course", .lower_bound = lower_bound, .blocks = std::move(blocks)};
  for (packing::PlannedBlock& block : plan.blocks) {
    block.size = (block.bytes + 63) / 64 * 64;
    plan.height = std::max(plan.height, block.offset + block.size);
  }
  plan.lower_bound = lower_bound != 0 ? lower_bound : plan.height;
  return plan;
}

std::string written(const packing::Plan& plan, const std::string& name) {
  std::string path = test::scratch_folder() + name + ".plan";
  write_atomically(path, text_of(plan));
  return path;
}

/// Blocks of 1, 2, … units that all live to the end, one above the other.
packing::Plan tower(std::size_t count, std::size_t unit) {
  std::vector<packing::PlannedBlock> blocks;
  std::uint64_t offset = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    blocks.push_back({.bytes = i * unit, .offset = offset, .until = count});
    offset += i * unit;
  }
  return plan_of(std::move(blocks));
}

// ---- what is taken from the device

TEST(PlannedSegments, OfADeviceWithoutPagesAreInPytorchsSteps) {
  for (const auto& [bytes, taken] : {std::pair<std::size_t, std::size_t>{1, 2 * MiB},
                                     {1 * MiB, 2 * MiB},
                                     {1 * MiB + 1, 20 * MiB},
                                     {10 * MiB - 64, 20 * MiB},
                                     {10 * MiB - 63, 10 * MiB},
                                     {10 * MiB, 10 * MiB},
                                     {10 * MiB + 1, 12 * MiB},
                                     {21 * MiB, 22 * MiB}}) {
    Desk desk({.page_bytes = 0});
    const Block block = desk.get(bytes);
    EXPECT_EQ(block.bytes, align_up(bytes, 64));
    EXPECT_EQ(desk.device.used_bytes(), taken) << bytes;
    EXPECT_THAT(desk.source.asked, ElementsAre(taken));
  }
}

TEST(PlannedSegments, WhereTheStepIsRefusedTheRequestAloneIsTaken) {
  for (const auto& [bytes, step] : {std::pair<std::size_t, std::size_t>{3 * MiB, 20 * MiB}, {100, 2 * MiB}}) {
    Desk desk({.page_bytes = 0});
    desk.source.most_at_once = step - 1;
    desk.get(bytes);
    EXPECT_THAT(desk.source.asked, ElementsAre(step, align_up(align_up(bytes, 64), 512)));
    EXPECT_EQ(desk.device.used_bytes(), align_up(bytes, 512));
  }
}

TEST(PlannedSegments, WithPagesAreAddressesInHalvesDownToTheRequest) {
  for (const std::size_t most : {64 * GiB, 64 * GiB - 1, 32 * GiB, 33 * MiB, 32 * MiB, 31 * MiB}) {
    Desk desk({.page_bytes = kPage});
    desk.source.most_at_once = most;
    std::vector<std::size_t> wanted{64 * GiB};
    // The shortest is that of the request, in whole pages.
    while (wanted.back() > most && wanted.back() > 32 * MiB)
      wanted.push_back(std::max(align_up(wanted.back() / 2, kPage), 32 * MiB));
    if (wanted.back() <= most) {
      desk.get(31 * MiB);
      EXPECT_EQ(desk.device.used_bytes(), 32 * MiB);
      EXPECT_EQ(desk.device.reserved_address_bytes(), wanted.back());
      EXPECT_EQ(desk.source.asked, wanted);
    } else {
      EXPECT_THROW(desk.get(31 * MiB), OutOfMemory);
      wanted.insert(wanted.end(), wanted.begin(), wanted.end());  // once more, when everything was given back
      EXPECT_EQ(desk.source.asked, wanted);
    }
  }
}

TEST(PlannedSegments, OfARequestLongerThanARangeAreOfItsBytes) {
  Desk desk({.capacity_bytes = 100 * GiB, .page_bytes = kPage});
  desk.get(65 * GiB + 1);
  EXPECT_THAT(desk.source.asked, ElementsAre(65 * GiB + kPage));
}

TEST(PlannedRequests, BeyondSixteenTebibytesAreRefusedBeforeTheDeviceIsAsked) {
  for (const std::size_t bytes : {16 * TiB + 1, SIZE_MAX, SIZE_MAX - 63}) {
    Desk desk({.capacity_bytes = 1 * GiB}, {{"plan", written(tower(3, 64), "huge")}});
    try {
      desk.get(bytes);
      ADD_FAILURE();
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.info().requested_bytes, bytes);
    }
    EXPECT_EQ(desk.planned->allocate_by_plan({.bytes = bytes}), std::nullopt);
    EXPECT_THAT(desk.source.asked, IsEmpty());
  }
  Desk desk({.capacity_bytes = 1 * GiB});
  try {
    desk.get(16 * TiB);
    ADD_FAILURE();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().requested_bytes, 16 * TiB);
  }
  EXPECT_FALSE(desk.source.asked.empty());
}

TEST(PlannedRequests, ARefusedOneCountsAsARetryWhereSomethingWentBackForIt) {
  Desk desk({.capacity_bytes = 40 * MiB, .page_bytes = kPage});
  desk.put(desk.get(30 * MiB));
  EXPECT_EQ(desk.stats().retries, 0);
  EXPECT_THROW(desk.get(50 * MiB), OutOfMemory);
  EXPECT_EQ(desk.stats().retries, 1);
  EXPECT_EQ(desk.stats().cached_bytes, 0u);
  EXPECT_THROW(desk.get(50 * MiB), OutOfMemory);
  EXPECT_EQ(desk.stats().retries, 1) << "nothing was cached any more";
}

TEST(PlannedRequests, ABlockIsAsLongAsItsRequestInUnitsOf64AndKnowsIt) {
  Desk desk({.page_bytes = kPage});
  for (const std::size_t bytes : {1, 63, 64, 65, 1000}) {
    const Block block = desk.get(bytes, 3, 512);
    EXPECT_EQ(block.bytes, align_up(bytes, 64));
    EXPECT_EQ(block.request.bytes, bytes);
    EXPECT_EQ(block.request.stream.id, 3u);
    EXPECT_EQ(Address(block.data) % 512, 0u);
  }
  SegmentCollector seen;
  desk.planned->walk(seen);
  std::size_t requested = 0;
  for (const Segment& segment : seen.take()) requested += segment.requested_bytes();
  EXPECT_EQ(requested, 1u + 63 + 64 + 65 + 1000);
}

// ---- what goes back

TEST(PlannedTrims, GiveBackFromTheNewestRangeOnAsMuchAsIsCachedBeyondWhatMayStay) {
  for (const std::size_t keep : {std::size_t{0}, 1 * MiB, 2 * MiB, 11 * MiB, 13 * MiB, 22 * MiB, 33 * MiB, 34 * MiB}) {
    Desk desk({.page_bytes = 0});
    std::vector<Block> blocks;
    for (const std::size_t mebibytes : {10, 12, 14}) blocks.push_back(desk.get(mebibytes * MiB));
    for (const std::size_t i : {0, 2}) desk.put(blocks[i]);
    // Cached are 10 and 14 MiB, each as a whole; 12 are out.
    const int before = desk.source.synchronized;
    const std::size_t cached = 24 * MiB;
    const std::size_t wanted = cached > keep ? cached - keep : 0;
    const std::size_t given = wanted == 0 ? 0 : wanted <= 14 * MiB ? 14 * MiB : 24 * MiB;
    EXPECT_EQ(desk.planned->trim(keep), given) << keep / MiB;
    EXPECT_EQ(desk.device.used_bytes(), 36 * MiB - given);
    EXPECT_EQ(desk.source.synchronized - before, wanted == 0 ? 0 : 1);
    EXPECT_EQ(desk.stats().cached_bytes, cached - given);
    EXPECT_EQ(desk.stats().largest_free_bytes, given == 0 ? 14 * MiB : given == cached ? 0 : 10 * MiB);
    EXPECT_EQ(desk.planned->trim(keep), 0u);
  }
}

TEST(PlannedTrims, OfARangeOfPagesStopAtWhatIsKept) {
  for (const std::size_t keep : {std::size_t{0}, kPage, 3 * kPage, 3 * kPage + 1, 4 * kPage, 9 * kPage}) {
    Desk desk({.page_bytes = kPage});
    const Block out = desk.get(kPage);
    desk.put(desk.get(4 * kPage));
    const std::size_t cached = 4 * kPage, wanted = cached > keep ? cached - keep : 0;
    EXPECT_EQ(desk.planned->trim(keep), align_up(wanted, kPage)) << keep;
    EXPECT_EQ(desk.stats().cached_bytes, cached - align_up(wanted, kPage));
    static_cast<void>(out);
  }
}

TEST(PlannedTrims, AnEmptyRangeGoesWithItsAddresses) {
  Desk desk({.page_bytes = kPage}, {{"plan", written(tower(4, kPage), "empty")}});
  const Block planned = desk.get(kPage), beside = desk.get(30 * MiB);
  const std::size_t addresses = desk.device.reserved_address_bytes();
  EXPECT_EQ(addresses, 64 * GiB + 10 * kPage);
  desk.put(planned);
  desk.put(beside);
  EXPECT_EQ(desk.planned->trim(0), kPage + 30 * MiB);
  EXPECT_EQ(desk.device.reserved_address_bytes(), 0u);
  EXPECT_EQ(desk.get(2 * kPage).bytes, 2 * kPage) << "and comes again with the next block of the plan";
  EXPECT_EQ(desk.device.reserved_address_bytes(), 10 * kPage);
}

// ---- streams

TEST(PlannedStreams, ABlockWaitsForEveryStreamThatUsedIt) {
  Desk desk({.page_bytes = 0, .manual_completion = true});
  const Block block = desk.get(20 * MiB, 1);
  for (const std::uint64_t stream : {1, 2, 2, 3}) desk.planned->record_use(block, {stream});
  desk.planned->deallocate(block, {4});
  const auto is_waiting = [&] {
    SegmentCollector seen;
    desk.planned->walk(seen);
    return seen.take().front().blocks.front().state == BlockState::kAwaitingStream;
  };
  for (const std::uint64_t stream : {2, 3, 4}) {
    EXPECT_TRUE(is_waiting()) << stream;
    EXPECT_EQ(desk.stats().cached_bytes, 0u);
    desk.device.complete(StreamRef{stream});
    static_cast<void>(desk.planned->trim(SIZE_MAX));
  }
  EXPECT_FALSE(is_waiting());
  EXPECT_EQ(desk.stats().cached_bytes, 20 * MiB);
  EXPECT_EQ(desk.get(20 * MiB, 1).data, block.data) << "its own stream need not wait";
}

TEST(PlannedStreams, OfOneStreamNothingIsMarkedAndOfTwoEachFree) {
  struct Counted final : ForwardingSource {
    using ForwardingSource::ForwardingSource;
    Ticket mark(StreamRef stream) override { return marks.push_back(stream.id), upstream_.mark(stream); }
    std::vector<std::uint64_t> marks;
  };
  AddressOnlySource device({.page_bytes = 0});
  Counted counted(device);
  PlannedAllocator planned({.source = counted, .options = Options(PlannedAllocator::options())});
  const auto turn = [&](std::uint64_t stream) {
    planned.deallocate(planned.allocate({.bytes = 1000, .stream = {stream}}), {stream});
  };
  turn(5);
  turn(5);
  EXPECT_THAT(counted.marks, IsEmpty());
  turn(6);
  counted.marks.clear();
  turn(6);
  turn(5);
  EXPECT_THAT(counted.marks, ElementsAre(6, 5));
}

TEST(PlannedStreams, WhereTheDeviceCannotSayWhenABlockStaysUntilTheEnd) {
  Desk desk({.page_bytes = 0, .manual_completion = true});
  const Block block = desk.get(20 * MiB, 1);
  desk.planned->record_use(block, {2});
  desk.source.fails = true;
  desk.put(block);
  desk.source.fails = false;
  desk.device.synchronize();
  EXPECT_EQ(desk.planned->trim(0), 0u);
  EXPECT_EQ(desk.device.used_bytes(), 20 * MiB);
  desk.planned->check_invariants();
  desk.source.fails = true;
  desk.planned.reset();  // a device that is lost gets its memory back all the same
  EXPECT_EQ(desk.device.used_bytes(), 0u);
}

// ---- the plan

TEST(PlannedPlans, EachBlockLiesWhereItsPlanSaysAndElsewhereWhereItsAlignmentForbidsThat) {
  const packing::Plan plan = tower(6, 64);  // at 0, 64, 192, 384, 640, 960
  for (const std::size_t alignment : {64, 128, 256, 512}) {
    Desk desk({.page_bytes = kPage}, {{"plan", written(plan, "places")}});
    std::optional<Address> base;
    for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
      const Block block = desk.get(plan.blocks[i].bytes, 0, alignment);
      if (!base) base = Address(block.data);
      EXPECT_EQ(Address(block.data) % alignment, 0u);
      if (plan.blocks[i].offset % alignment == 0)
        EXPECT_EQ(Address(block.data) - *base, plan.blocks[i].offset);
      else
        EXPECT_GE(Address(block.data) - *base, plan.height) << "not where others will be";
    }
  }
}

TEST(PlannedPlans, ARequestThatItDoesNotKnowLiesLowestWhereNoneOfItsBlocksComesAnyMore) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    // Blocks of random lives in layers of their own, so that none overlap.
    std::vector<packing::PlannedBlock> blocks;
    constexpr std::uint64_t kCount = 24;
    std::vector<std::uint64_t> busy_until(6, 0);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      std::vector<std::size_t> free;
      for (std::size_t layer = 0; layer < busy_until.size(); ++layer)
        if (busy_until[layer] <= i) free.push_back(layer);
      if (free.empty()) {
        busy_until.push_back(0);
        free.push_back(busy_until.size() - 1);
      }
      const std::size_t layer = free[random() % free.size()];
      busy_until[layer] = i + 1 + random() % 8;
      blocks.push_back({.bytes = 64 * (1 + random() % 60),
                        .offset = layer * 64 * 64 + 64 * (random() % 4),
                        .until = std::min(busy_until[layer], kCount)});
    }
    const packing::Plan plan = plan_of(std::move(blocks));
    Desk desk({.page_bytes = kPage}, {{"plan", written(plan, "leftover")}});
    std::vector<std::pair<std::uint64_t, std::uint64_t>> strangers;  // from, to
    std::optional<Address> base;
    std::vector<std::pair<std::uint64_t, Block>> live;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const Block own = desk.get(plan.blocks[i].bytes);
      if (!base) base = Address(own.data) - plan.blocks[i].offset;
      live.emplace_back(plan.blocks[i].until, own);
      std::erase_if(live, [&](const auto& one) {
        if (one.first > i + 1) return false;
        desk.put(one.second);
        return true;
      });
      if (i % 3 != 1) continue;
      const std::size_t bytes = 64 * (61 + random() % 40), alignment = std::size_t{64} << random() % 4;
      const auto is_free = [&](std::uint64_t from) {
        for (std::uint64_t j = 0; j < kCount; ++j) {
          const packing::PlannedBlock& block = plan.blocks[j];
          const bool comes = block.until > i + 1 && block.offset < from + bytes && block.offset + block.size > from;
          if (comes) return false;
        }
        return std::ranges::none_of(strangers,
                                    [&](const auto& one) { return one.first < from + bytes && one.second > from; });
      };
      std::optional<std::uint64_t> wanted;
      for (std::uint64_t from = 0; from + bytes <= plan.height && !wanted; from += alignment)
        if (is_free(from)) wanted = from;
      const Block stranger = desk.get(bytes, 0, alignment);
      const std::uint64_t from = Address(stranger.data) - *base;
      if (wanted)
        EXPECT_EQ(from, *wanted) << bytes << " to " << alignment << " at " << i;
      else
        EXPECT_GE(from, plan.height) << bytes << " at " << i;
      if (wanted) strangers.emplace_back(from, from + bytes);
    }
  }
}

TEST(PlannedPlans, ByPlanAloneWhatItHasNoPlaceForIsNotServed) {
  const packing::Plan plan = tower(4, 4096);
  Desk without({.page_bytes = kPage});
  EXPECT_EQ(without.planned->allocate_by_plan({.bytes = 4096}), std::nullopt);
  Desk desk({.page_bytes = kPage}, {{"plan", written(plan, "alone")}});
  EXPECT_EQ(desk.planned->allocate_by_plan({.bytes = 5}), std::nullopt) << "not before the plan has a range";
  EXPECT_EQ(desk.device.used_bytes(), 0u);
  for (std::size_t i = 1; i <= 4; ++i) {
    const auto block = desk.planned->allocate_by_plan({.bytes = i * 4096});
    ASSERT_TRUE(block) << i;
    EXPECT_EQ(block->bytes, i * 4096);
    EXPECT_EQ(block->request.bytes, i * 4096);
  }
  EXPECT_EQ(desk.planned->allocate_by_plan({.bytes = 4097}), std::nullopt) << "all of it is in use";
  // What is longer than the plan is high has no place in it, though the last page has more bytes.
  Desk other({.page_bytes = kPage}, {{"plan", written(plan, "alone")}});
  other.put(other.get(4096));
  EXPECT_EQ(other.planned->allocate_by_plan({.bytes = plan.height + 64}), std::nullopt);
  EXPECT_THAT(desk.source.asked, ElementsAre(kPage));
}

TEST(PlannedPlans, WithoutAddressesForAllOfItAPlanIsNotUsedAndNotAskedForAgain) {
  Desk desk({.page_bytes = kPage}, {{"plan", written(tower(6, 4 * MiB), "no addresses")}});
  desk.source.most_at_once = 80 * MiB;
  for (std::size_t i = 1; i <= 6; ++i) EXPECT_EQ(desk.get(i * 4 * MiB).bytes, i * 4 * MiB);
  EXPECT_EQ(std::ranges::count(desk.source.asked, 84 * MiB), 1);
}

TEST(PlannedPlans, IdlePagesGoBackOnlyBeyondItsBoundAPartOfItAndFourMebibytes) {
  // Two blocks of 50 MiB that never live at once, far apart; the second one needs pages.
  constexpr std::size_t kBytes = 50 * MiB;
  const auto peak = [&](std::size_t lower_bound, std::size_t height) {
    std::vector<packing::PlannedBlock> blocks{{.bytes = kBytes, .offset = 0, .until = 1},
                                              {.bytes = kBytes, .offset = height - kBytes, .until = 2}};
    Desk desk({.page_bytes = kPage}, {{"plan", written(plan_of(std::move(blocks), lower_bound), "loose")}});
    desk.put(desk.get(kBytes));
    desk.get(kBytes);
    EXPECT_EQ(desk.source.synchronized, desk.device.used_bytes() < 2 * kBytes ? 1 : 0) << "no stream uses what goes";
    return desk.device.used_bytes();
  };
  // Enough is b + b / 50 + 4 MiB. Both together are 100 MiB.
  EXPECT_EQ(peak(50 * MiB, 200 * MiB), 54 * MiB) << "55 MiB are enough: in whole pages";
  EXPECT_EQ(peak(100 * MiB, 200 * MiB), 100 * MiB) << "106 are";
  EXPECT_EQ(peak(90 * MiB, 200 * MiB), 94 * MiB) << "95.8 are";
  EXPECT_EQ(peak(94 * MiB, 200 * MiB), 98 * MiB) << "99.88 are";
  EXPECT_EQ(peak(95 * MiB, 200 * MiB), 100 * MiB) << "100.9 are";
  EXPECT_EQ(peak(95 * MiB, 100 * MiB), 100 * MiB) << "a plan that is hardly above it keeps its pages";
}

TEST(PlannedPlans, OfAnotherModelAreDroppedAtTheSixtyFourthRequestInSoManyWords) {
  for (const std::uint64_t known : {31, 32})
    for (const bool fails : {false, true}) {
      SCOPED_TRACE(testing::Message() << known << ", " << fails);
      std::vector<packing::PlannedBlock> blocks;
      for (std::uint64_t i = 0; i < 64; ++i) blocks.push_back({.bytes = 64 * (i + 1), .offset = 8192 * i, .until = 64});
      packing::Plan plan = plan_of(std::move(blocks));
      plan.name = fmt::format("model {} {}", known, fails);
      Desk desk({.page_bytes = kPage},
                {{"plan", written(plan, "foreign")}, {"mismatch", fails ? "error" : "fallback"}, {"window", "4096"}});
      ::testing::internal::CaptureStderr();
      std::string thrown;
      for (std::uint64_t i = 0; i < 66 && thrown.empty(); ++i) try {
          desk.get(i < known ? 64 * (i + 1) : 1'000'000);
          if (i == 64) {
            EXPECT_EQ(desk.planned->allocate_by_plan({.bytes = 64 * 60}).has_value(), known == 32);
          }
        } catch (const Error& error) {
          thrown = fmt::format("{}: {}", i, error.what());
        }
      const std::string said = ::testing::internal::GetCapturedStderr();
      const std::string text = fmt::format(
          "the plan of '{}' has 31 of the first 64 requests: it is of another model, or of other sizes", plan.name);
      EXPECT_EQ(said, known == 31 && !fails ? "tenon: planned: " + text + "; it is not used\n" : "");
      EXPECT_EQ(thrown, known == 31 && fails
                            ? "63: planned: " + text + "; make one of this run, or set mismatch=fallback"
                            : "");
    }
}

// ---- recordings

TEST(PlannedRecordings, SayWhereTheyAreOrWhyThereIsNone) {
  const std::string path = test::scratch_folder() + "said.plan";
  const auto said_of = [](const std::string& file) {
    ::testing::internal::CaptureStderr();
    {
      Desk desk({.page_bytes = kPage}, {{"record", file}, {"planning_seconds", "0"}});
      desk.put(desk.get(100));
    }
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_of(""), "");
  EXPECT_EQ(said_of(path), fmt::format("tenon: planned: the plan of this run is in {0}; the next one is served from it "
                                       "with allocator.planned.plan={0}\n",
                                       path));
  EXPECT_EQ(said_of(path), "") << "the next pass has the same to say";
  std::remove(path.c_str());
  const std::string folder = test::scratch_folder() + "gone";
  EXPECT_EQ(refusal_of([&] {
              Desk({.page_bytes = kPage}, {{"record", folder + "/x.plan"}});
            }),
            "cannot write " + folder + "/x.plan: No such file or directory")
      << "before the run";
  std::filesystem::create_directory(folder);
  ::testing::internal::CaptureStderr();
  {
    Desk desk({.page_bytes = kPage}, {{"record", folder + "/x.plan"}});
    std::filesystem::remove_all(folder);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("tenon: planned: no plan is written: cannot write "));
}

TEST(PlannedRecordings, HaveEveryRequestWithItsStreamItsPurposeAndItsLife) {
  const std::string path = test::scratch_folder() + "lives.plan";
  for (const bool names_purposes : {false, true}) {
    ::testing::internal::CaptureStderr();
    {
      Desk desk({.page_bytes = kPage, .manual_completion = true}, {{"record", path}, {"planning_seconds", "0"}});
      const auto get = [&](std::size_t bytes, std::uint64_t stream, Purpose purpose) {
        return desk.planned->allocate(
            {.bytes = bytes, .stream = {stream}, .purpose = names_purposes ? purpose : Purpose::kOther});
      };
      const Block first = get(100, 9, Purpose::kGradient), second = get(64, 4, Purpose::kOther);
      desk.put(first);
      const Block third = get(65, 9, Purpose::kData);
      desk.planned->record_use(third, {4});
      desk.put(third);  // waits for stream 4
      get(1, 5, Purpose::kData);
      desk.device.synchronize();
      get(2, 5, Purpose::kData);
      static_cast<void>(second);
    }
    ::testing::internal::GetCapturedStderr();
    const packing::Plan plan = packing::read_plan(path);
    EXPECT_EQ(plan.name, "a recorded run");
    std::vector<std::string> blocks;
    for (const packing::PlannedBlock& block : plan.blocks)
      blocks.push_back(fmt::format("{} of {} on {} until {}", block.purpose ? name_of(*block.purpose) : "-",
                                   block.bytes, block.stream, block.until));
    const auto wanted = [&](const char* purpose, const char* rest) {
      return std::string(names_purposes ? purpose : "-") + rest;
    };
    EXPECT_THAT(blocks, ElementsAre(wanted("gradient", " of 100 on 0 until 2"), wanted("other", " of 64 on 1 until 5"),
                                    wanted("data", " of 65 on 0 until 4"), wanted("data", " of 1 on 2 until 5"),
                                    wanted("data", " of 2 on 2 until 5")));
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon::planned
