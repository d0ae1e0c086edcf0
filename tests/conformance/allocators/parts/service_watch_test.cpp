// An allocator in service that is watched: what it does wrong is told once in words, with how often, and what cannot go
// on ends.
#include <tenon/conformance/service_watch.h>

#include "support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = ServiceFaults::Kind;

TEST(ServiceFaults, AreToldInTheOrderInWhichTheyWereMetWithTheMomentOfTheFirst) {
  int step = 0, told = 0;
  ServiceFaults faults([&] { return ", in step " + std::to_string(++step); }, [&] { ++told; });
  EXPECT_TRUE(faults.empty());
  EXPECT_THAT(faults.sentences(), ElementsAre());
  faults.add(Kind::kPlace, "overlaps");
  EXPECT_FALSE(faults.empty());
  faults.add(Kind::kBytes, "too few");
  for (int i = 0; i < 3; ++i) faults.add(Kind::kPlace, "overlaps elsewhere");
  EXPECT_EQ(told, 2) << "of each kind once";
  EXPECT_THAT(faults.sentences(), ElementsAre("overlaps, in step 1; the first of 4 times", "too few, in step 2"));
}

TEST(ServiceFaults, OfTheEndEachInstanceHasOne) {
  ServiceFaults faults({});
  faults.add(Kind::kLeak, "kept 1");
  EXPECT_THAT(faults.sentences(), ElementsAre("kept 1"));
  faults.add(Kind::kLeak, "kept 2");
  EXPECT_THAT(faults.sentences(), ElementsAre("kept 1; so did 1 other instance of it"));
  faults.add(Kind::kLeak, "kept 3");
  EXPECT_THAT(faults.sentences(), ElementsAre("kept 1; so did 2 other instances of it"));
  faults.add(Kind::kFigures, "they differ");
  faults.add(Kind::kFigures, "they differ");
  EXPECT_EQ(faults.sentences()[1], "they differ; the first of 2 times");
}

TEST(ServiceFaults, ASentenceWithoutHowOftenIsTheSameForEveryPartOfARun) {
  EXPECT_EQ(without_times("overlaps, in step 1; the first of 4 times"), "overlaps, in step 1");
  EXPECT_EQ(without_times("kept 1; so did 2 other instances of it"), "kept 1");
  EXPECT_EQ(without_times("too few; really"), "too few; really");
}

/// What the allocator answers, from the address that it would have given.
using Answer = std::function<Block(Block)>;

class Told final : public Allocator {
 public:
  Told(MemorySource& source, const Answer& answer, bool leaks) : source_(source), answer_(answer), leaks_(leaks) {}
  Block allocate(const Request& request) override {
    const std::size_t bytes = align_up(request.bytes, 512);
    Block right{.data = source_.acquire(bytes), .bytes = bytes, .request = request};
    right.cookie = right.data;
    return answer_ ? answer_(right) : right;
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    if (!leaks_) source_.release(block.cookie, align_up(block.request.bytes, 512));
  }
  void record_use(const Block&, StreamRef) override { throw std::runtime_error("what is that?"); }
  std::size_t trim(std::size_t) override { throw Error("not today"); }

 private:
  MemorySource& source_;
  const Answer answer_;
  const bool leaks_;
};

class InService : public testing::Test {
 protected:
  std::unique_ptr<Allocator> make(const Answer& answer = {}, bool leaks = false) {
    const AllocatorInfo told{.name = "told", .create = [=](const AllocatorContext& context) {
                               return std::make_unique<Told>(context.source, answer, leaks);
                             }};
    return watched_in_service(told, board_, faults_, 3).create({.source = device_, .options = options_});
  }
  std::vector<std::string> sentences() const { return faults_.sentences(); }

  AddressOnlySource device_{{.device = "service", .capacity_bytes = 1 * GiB}};
  OptionSchema schema_;
  Options options_{schema_};
  CallBoard board_{};
  ServiceFaults faults_{[] { return std::string(" (here)"); }};
};

TEST_F(InService, NothingIsSaidOfOneThatKeepsItsContract) {
  auto allocator = make();
  std::vector<Block> blocks;
  for (std::size_t i = 1; i <= 50; ++i) blocks.push_back(allocator->allocate({.bytes = 100 * i}));
  for (const Block& block : blocks) allocator->deallocate(block, {});
  allocator.reset();
  EXPECT_THAT(sentences(), ElementsAre());
  EXPECT_EQ(device_.usage().free_bytes, 1 * GiB);
}

TEST_F(InService, ABlockThatIsTooSmallIsTold) {
  auto allocator = make([](Block block) {
    block.bytes = block.request.bytes - 1;
    return block;
  });
  allocator->deallocate(allocator->allocate({.bytes = 1000}), {});
  EXPECT_THAT(sentences(), ElementsAre("handed out 999 bytes for a request of 1000 (here)"));
}

TEST_F(InService, ARequestThatIsNotTheOneThatWasServedIsTold) {
  const std::vector<std::function<void(Request&)>> changes = {
      [](Request& request) { request.bytes = 7; }, [](Request& request) { request.stream = {9}; },
      [](Request& request) { request.purpose = Purpose::kGradient; }};
  for (const auto& change : changes) {
    ServiceFaults faults({});
    const AllocatorInfo told{.name = "told", .create = [&](const AllocatorContext& context) {
                               return std::make_unique<Told>(
                                   context.source,
                                   [&](Block block) {
                                     change(block.request);
                                     return block;
                                   },
                                   true);
                             }};
    watched_in_service(told, board_, faults).create({.source = device_, .options = options_})->allocate({.bytes = 600});
    EXPECT_THAT(faults.sentences().front(), StartsWith("lost a request: "));
  }
}

TEST_F(InService, AnAddressThatIsNotAlignedIsTold) {
  std::size_t off = 32;
  auto allocator = make([&](Block block) {
    block.data = static_cast<char*>(block.data) + off;
    block.bytes -= off;
    return block;
  });
  allocator->deallocate(allocator->allocate({.bytes = 100}), {});
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], HasSubstr(", which is not aligned to 64 (here)"));
}

TEST_F(InService, AnAlignmentThatIsAskedForIsHeldToo) {
  auto allocator = make([](Block block) {
    block.data = static_cast<char*>(block.data) + 64;
    block.bytes -= 64;
    return block;
  });
  allocator->deallocate(allocator->allocate({.bytes = 100, .alignment = 64}), {});
  EXPECT_THAT(sentences(), ElementsAre());
  allocator->deallocate(allocator->allocate({.bytes = 100, .alignment = 128}), {});
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], HasSubstr("which is not aligned to 128"));
}

TEST_F(InService, ABlockOutsideOfTheDevicesMemoryIsTold) {
  auto allocator = make([](Block block) {
    block.bytes += 1;
    return block;
  });
  allocator->deallocate(allocator->allocate({.bytes = 512}), {});
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], HasSubstr("), which is not inside memory that it has from the device (here)"));
}

TEST_F(InService, OneByteInCommonIsAnOverlap) {
  Block first;
  auto allocator = make([&](Block block) {
    if (first.data != nullptr) {
      block.data = static_cast<char*>(first.data) + 448;
    } else {
      first = block;
    }
    return block;
  });
  const Block one = allocator->allocate({.bytes = 512});
  const Block other = allocator->allocate({.bytes = 64});
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], HasSubstr("which overlaps the live block ["));
  allocator->deallocate(other, {});
  allocator->deallocate(one, {});
}

TEST_F(InService, AMisuseOfTheDeviceIsToldAndDoesNotReachIt) {
  auto allocator = make();
  const Block block = allocator->allocate({.bytes = 512});
  allocator->deallocate(block, {});
  allocator->deallocate(block, {});
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], StartsWith("misused its device: release("));
  EXPECT_EQ(device_.usage().free_bytes, 1 * GiB);
}

TEST_F(InService, WhatIsKeptAtTheEndIsTold) {
  auto allocator = make({}, /*leaks=*/true);
  allocator->deallocate(allocator->allocate({.bytes = 512}), {});
  EXPECT_THAT(sentences(), ElementsAre()) << "until it is gone";
  allocator.reset();
  EXPECT_THAT(sentences(),
              ElementsAre("kept memory when it was destroyed: 512 bytes were not given back to the device: 1 segment "
                          "(here)"));
}

TEST_F(InService, ANullAddressEndsTheService) {
  auto allocator = make(
      [](Block block) {
        block.data = nullptr;
        return block;
      },
      /*leaks=*/true);
  const std::string what = "answered a request of 600 bytes with a null address, where it had to throw OutOfMemory";
  expect_error<EndOfService>([&] { allocator->allocate({.bytes = 600}); }, "allocator 'told' " + what);
  EXPECT_THAT(sentences(), ElementsAre(what + " (here)"));
}

TEST_F(InService, AForeignExceptionEndsTheServiceAndAnErrorOfItsOwnDoesNot) {
  auto allocator = make();
  const Block block = allocator->allocate({.bytes = 512});
  expect_error<EndOfService>(
      [&] { allocator->record_use(block, {1}); },
      "threw std::runtime_error (\"what is that?\"); it may throw only tenon::OutOfMemory and tenon::Error");
  ASSERT_EQ(sentences().size(), 1U);
  EXPECT_THAT(sentences()[0], HasSubstr("neither tenon::OutOfMemory nor tenon::Error: "));
  expect_error([&] { allocator->trim(0); }, "not today");
  EXPECT_EQ(sentences().size(), 1U);
  allocator->deallocate(block, {});
}

TEST_F(InService, CallsAreOnTheBoardWhileTheyAreUnderWayAsOneOfItsNumber) {
  int seen = 0;
  auto allocator = make([&](Block block) {
    for (const CallSlot& slot : board_.slots()) {
      if (!slot.is_under_way()) continue;
      ++seen;
      EXPECT_EQ(slot.facts.call, Call::kAllocate);
      EXPECT_EQ(slot.facts.allocator, 3);
      EXPECT_EQ(slot.facts.bytes, 700U);
    }
    return block;
  });
  allocator->deallocate(allocator->allocate({.bytes = 700}), {});
  EXPECT_EQ(seen, 1);
  for (const CallSlot& slot : board_.slots()) EXPECT_FALSE(slot.is_under_way());
}

TEST_F(InService, ABlockOfAnEarlierStretchIsKnownNoMore) {
  constexpr std::uint64_t kSecondStretch = 2 * 65536;
  std::uint64_t turn = 0;
  Block first;
  const auto allocator = make(
      [&](Block block) {
        if (turn++ == 0) first = block;
        if (turn == kSecondStretch + 1) block.data = first.data;
        return block;
      },
      /*leaks=*/true);
  const Block early = allocator->allocate({.bytes = 512});
  while (turn < 65536 + 10'000) static_cast<void>(allocator->allocate({.bytes = 512}));
  allocator->deallocate(early, {});  // while nobody looks
  while (turn <= kSecondStretch) static_cast<void>(allocator->allocate({.bytes = 512}));
  EXPECT_THAT(sentences(), ElementsAre());
}

TEST(WatchedInService, IsAsSafeForThreadsAsItsAllocatorAndNothingWhereNoneIsMade) {
  class Safe final : public Allocator {
   public:
    explicit Safe(bool is_safe) : is_safe_(is_safe) {}
    Block allocate(const Request&) override { return {}; }
    void deallocate(const Block&, StreamRef) noexcept override {}
    bool is_thread_safe() const override { return is_safe_; }

   private:
    const bool is_safe_;
  };
  AddressOnlySource device;
  const OptionSchema none;
  const Options options(none);
  CallBoard board{};
  ServiceFaults faults({});
  for (const bool is_safe : {false, true}) {
    const AllocatorInfo info{.name = "safe",
                             .create = [&](const AllocatorContext&) { return std::make_unique<Safe>(is_safe); }};
    const auto allocator = watched_in_service(info, board, faults).create({.source = device, .options = options});
    EXPECT_EQ(allocator->is_thread_safe(), is_safe);
  }
  const AllocatorInfo nothing{.name = "nothing",
                              .create = [](const AllocatorContext&) { return std::unique_ptr<Allocator>(); }};
  EXPECT_EQ(watched_in_service(nothing, board, faults).create({.source = device, .options = options}), nullptr);
  EXPECT_TRUE(faults.empty());
}

TEST_F(InService, PlacesAreLookedAtAllAlongTheBeginningAndInStretchesLater) {
  constexpr std::uint64_t kFirst = 65536, kPeriod = 65536, kStretch = 4096;
  bool is_outside = false;
  std::uint64_t found = 0;
  ServiceFaults faults([&] {
    ++found;  // asked for each fault
    return std::string();
  });
  const AllocatorInfo told{.name = "told", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Told>(
                                 context.source,
                                 [&](Block block) {
                                   if (is_outside) block.data = static_cast<char*>(block.data) + (std::size_t{1} << 40);
                                   return block;
                                 },
                                 false);
                           }};
  const auto allocator = watched_in_service(told, board_, faults).create({.source = device_, .options = options_});
  std::uint64_t made = 0;
  const auto is_looked_at = [&](std::uint64_t turn) {
    for (; made <= turn; ++made) {
      is_outside = made == turn;
      allocator->deallocate(allocator->allocate({.bytes = 512}), {});
    }
    return std::exchange(found, 0) == 1;
  };
  EXPECT_TRUE(is_looked_at(0));
  EXPECT_TRUE(is_looked_at(kFirst - 1));
  EXPECT_TRUE(is_looked_at(kPeriod)) << "the first stretch follows at once";
  EXPECT_TRUE(is_looked_at(kPeriod + kStretch - 1));
  EXPECT_FALSE(is_looked_at(kPeriod + kStretch));
  EXPECT_FALSE(is_looked_at(2 * kPeriod - 1));
  EXPECT_TRUE(is_looked_at(2 * kPeriod));
  EXPECT_TRUE(is_looked_at(2 * kPeriod + kStretch - 1));
  EXPECT_FALSE(is_looked_at(2 * kPeriod + kStretch));
}

}  // namespace
}  // namespace tenon::conformance
