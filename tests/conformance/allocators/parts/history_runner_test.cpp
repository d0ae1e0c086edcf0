// One history on one allocator: what is found, in which words, and what is nothing wrong.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Every block is a segment of its own. A test changes what it does in one place.
struct Changes {
  std::function<void(Block&)> handed_out;
  std::function<void(PolicyStats&)> report;
  std::function<void(std::map<std::uintptr_t, BlockInfo>&)> layout;  ///< before it is shown
  std::function<std::size_t(std::size_t given)> trim;
  std::function<void()> use, invariants, create, allocate;
  bool never_releases = false, shows_layout = false;
  std::size_t beyond = 0;  ///< bytes of a shown segment behind its block
};

class Plain final : public Allocator {
 public:
  Plain(MemorySource& source, const Changes& changes) : source_(source), changes_(changes) {
    if (changes_.create) changes_.create();
  }
  ~Plain() override {
    if (changes_.never_releases) return;
    source_.synchronize();
    for (const auto& [address, info] : live_) source_.release(reinterpret_cast<void*>(address), info.bytes);
  }
  Block allocate(const Request& request) override {
    if (changes_.allocate) changes_.allocate();
    const std::size_t bytes = align_up(request.bytes, 512);
    Block block{.data = source_.acquire(bytes), .bytes = bytes, .request = request};
    if (block.data == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    block.cookie = block.data;
    BlockInfo info{};
    info.address = Address(block.data);
    info.bytes = bytes;
    info.requested_bytes = request.bytes;
    info.state = BlockState::kActive;
    live_[reinterpret_cast<std::uintptr_t>(block.data)] = info;
    if (changes_.handed_out) changes_.handed_out(block);
    return block;
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    const auto at = live_.find(reinterpret_cast<std::uintptr_t>(block.cookie));
    if (at == live_.end() || changes_.never_releases) return;
    source_.synchronize();
    source_.release(block.cookie, at->second.bytes);
    live_.erase(at);
  }
  void record_use(const Block&, StreamRef) override {
    if (changes_.use) changes_.use();
  }
  std::size_t trim(std::size_t) override { return changes_.trim ? changes_.trim(0) : 0; }
  void report(PolicyStats& stats) const override {
    if (changes_.report) changes_.report(stats);
  }
  void walk(SegmentVisitor& visitor) const override {
    if (!changes_.shows_layout) return;
    auto shown = live_;
    if (changes_.layout) changes_.layout(shown);
    for (const auto& [segment, block] : shown) {
      SegmentInfo info{};
      info.address = segment;
      info.bytes = block.bytes + changes_.beyond;
      visitor.segment(info);
      visitor.block(block);
    }
  }
  void check_invariants() const override {
    if (changes_.invariants) changes_.invariants();
  }

 private:
  MemorySource& source_;
  const Changes changes_;
  std::map<std::uintptr_t, BlockInfo> live_;
};

Finding found_in(const Changes& changes, const Operations& history, const RunSettings& settings = {}) {
  const AllocatorInfo info{.name = "plain", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Plain>(context.source, changes);
                           }};
  const OptionSchema none;
  const Options options(none);
  return run_history({info, options}, history, settings);
}

Operation taken(std::uint32_t slot, std::size_t bytes, std::uint64_t stream = 0, std::size_t alignment = 64) {
  return {.kind = Operation::kAllocate, .slot = slot, .bytes = bytes, .alignment = alignment, .stream = stream};
}
Operation given_back(std::uint32_t slot, std::uint64_t stream = 0) {
  return {.kind = Operation::kFree, .slot = slot, .stream = stream};
}
Operation used(std::uint32_t slot, std::uint64_t stream) {
  return {.kind = Operation::kUse, .slot = slot, .stream = stream};
}
const Operations kUsual = {taken(0, 1000),
                           taken(1, 77, 1),
                           used(0, 1),
                           given_back(0),
                           {.kind = Operation::kComplete, .stream = 1},
                           {.kind = Operation::kTrim},
                           given_back(5),
                           taken(1, 9),
                           taken(2, 5000),
                           given_back(1, 1)};

TEST(History, OfASoundAllocatorFindsNothing) {
  const Finding finding = found_in({}, kUsual);
  EXPECT_TRUE(finding.empty()) << finding.text;
  const Finding shown = found_in({.shows_layout = true}, kUsual);
  EXPECT_TRUE(shown.empty()) << shown.text;
}

TEST(History, TellsWhereEachAllocationWentAndHowManyCallsCouldFail) {
  std::vector<std::uintptr_t> places;
  std::int64_t calls = 0;
  RunSettings settings;
  settings.placements = &places;
  settings.fallible_calls = &calls;
  EXPECT_TRUE(found_in({}, kUsual, settings).empty());
  EXPECT_EQ(places.size(), 3U) << "a full place takes no other, and an empty one gives none";
  EXPECT_EQ(calls, 3);
}

TEST(History, ABlockIsHeldAgainstItsRequest) {
  Finding finding =
      found_in({.handed_out = [](Block& block) { block.bytes = block.request.bytes - 1; }}, {taken(0, 1000)});
  EXPECT_EQ(finding.cause, cause::kBytes);
  EXPECT_EQ(finding.text, "allocate(1000) gave a block of only 999 bytes");
  finding = found_in({.handed_out = [](Block& block) { block.data = nullptr; }}, {taken(0, 1000)});
  EXPECT_EQ(finding.cause, cause::kBytes);
  EXPECT_THAT(finding.text,
              HasSubstr("allocate(1000) gave a null address: where there is no memory it throws OutOfMemory"));
  finding = found_in({.handed_out =
                          [](Block& block) {
                            block.data = static_cast<char*>(block.data) + 64;
                            block.bytes -= 64;
                          }},
                     {taken(0, 100, 0, 128)});
  EXPECT_EQ(finding.cause, cause::kAlignment);
  EXPECT_THAT(finding.text, AllOf(StartsWith("allocate(100) gave 0x"), HasSubstr("which is not aligned to 128")));
  std::uintptr_t begin = 0, end = 0;
  finding = found_in({.handed_out =
                          [&](Block& block) {
                            block.bytes += 1;
                            begin = reinterpret_cast<std::uintptr_t>(block.data);
                            end = begin + block.bytes;
                          }},
                     {taken(0, 512)});
  EXPECT_EQ(finding.cause, cause::kOutside);
  EXPECT_EQ(finding.text,
            fmt::format("allocate(512) gave [{:#x}, {:#x}), which the source did not supply", begin, end));
}

TEST(History, OnlyTheCausesThatAreAskedForAreFound) {
  RunSettings settings;
  settings.only = {cause::kAlignment};
  const Changes small{.handed_out = [](Block& block) { block.bytes = 1; }};
  EXPECT_TRUE(found_in(small, {taken(0, 1000)}, settings).empty());
  settings.only = {cause::kAlignment, cause::kBytes};
  EXPECT_EQ(found_in(small, {taken(0, 1000)}, settings).cause, cause::kBytes);
}

TEST(History, ATwiceGivenBlockIsAnOverlap) {
  void* first = nullptr;
  const Finding finding = found_in({.handed_out =
                                        [&](Block& block) {
                                          if (first == nullptr) first = block.data;
                                          block.data = first;
                                        }},
                                   {taken(0, 512), taken(1, 512)});
  EXPECT_EQ(finding.cause, cause::kOverlap);
}

TEST(History, ErrorsAreFoundUnlessACallToTheSourceFailed) {
  RunSettings faulty;
  faulty.fault.index = 100;
  const auto fails = [] { throw Error("it does not work"); };
  const std::vector<std::pair<Changes, std::string>> all = {
      {{.allocate = fails}, "allocate(1000) threw: it does not work"},
      {{.use = fails}, "record_use threw: it does not work"},
      {{.trim = [&](std::size_t) -> std::size_t { throw Error("it does not work"); }}, "trim threw: it does not work"}};
  for (const auto& [changes, words] : all) {
    const Finding finding = found_in(changes, kUsual);
    EXPECT_EQ(finding.cause, cause::kThrow);
    EXPECT_EQ(finding.text, words);
    EXPECT_TRUE(found_in(changes, kUsual, faulty).empty()) << words;
  }
}

TEST(History, AConstructorMayFailOnlyWithItsSource) {
  const Changes fails{.create = [] { throw Error("no room"); }};
  EXPECT_EQ(found_in(fails, kUsual).text, "an error where none may be: no room");
  RunSettings faulty;
  faulty.fault.index = 0;
  EXPECT_TRUE(found_in(fails, kUsual, faulty).empty());
}

TEST(History, RunningOutOfMemoryIsNothingWrong) {
  RunSettings small;
  small.capacity_bytes = 4096;
  EXPECT_TRUE(found_in({}, {taken(0, 3000), taken(1, 3000), given_back(0), taken(1, 3000)}, small).empty());
}

TEST(History, ATrimSaysWhatTheSourceGot) {
  const Finding finding = found_in({.trim = [](std::size_t) -> std::size_t { return 512; }}, kUsual);
  EXPECT_EQ(finding.cause, cause::kTrim);
  EXPECT_EQ(finding.text, "trim says it gave back 512 bytes; the source got 0");
}

TEST(History, WhatIsReportedIsHeldAgainstTheLedger) {
  const auto found = [](const std::function<void(PolicyStats&)>& report) {
    return found_in({.report = report}, {taken(0, 1000)});
  };
  Finding finding = found([](PolicyStats& stats) { stats.cached_bytes = 1; });
  EXPECT_EQ(finding.cause, cause::kReport);
  EXPECT_EQ(finding.text, "the policy's cached_bytes says 1, the ledger beside it 0");
  finding = found([](PolicyStats& stats) { stats.largest_free_bytes = 5; });
  EXPECT_EQ(finding.text, "the policy's largest_free_bytes says 5, the ledger beside it 0");
  finding = found([](PolicyStats& stats) {
    stats.has_pools = true;
    stats.allocated_bytes[0].current = 7;
  });
  EXPECT_THAT(finding.text, StartsWith("the policy's own allocated_bytes says 7, the ledger beside it "));
  EXPECT_TRUE(found([](PolicyStats& stats) { stats.allocated_bytes[0].current = 7; }).empty())
      << "of one without pools they are nobody's";
}

TEST(History, InvariantsThatDoNotHoldAreFoundAfterEachStepOrAtTheEnd) {
  int calls = 0;
  const Changes broken{.invariants = [&] {
    if (++calls > 3) throw Error("a list is broken");
  }};
  EXPECT_EQ(found_in(broken, kUsual).text, "check_invariants(): a list is broken");
  EXPECT_EQ(calls, 4);
  calls = 0;
  RunSettings at_the_end;
  at_the_end.check_each_step = false;
  EXPECT_TRUE(found_in(broken, kUsual, at_the_end).empty());
  EXPECT_EQ(calls, 2) << "before the rest is freed and behind it";
  at_the_end.only = {cause::kBytes};
  EXPECT_TRUE(found_in({.invariants = [] { throw Error("a list is broken"); }}, kUsual, at_the_end).empty());
}

using Layout = std::map<std::uintptr_t, BlockInfo>;
Finding shown(const std::function<void(Layout&)>& layout) {
  return found_in({.layout = layout, .shows_layout = true}, {taken(0, 1000), taken(7, 2000)});
}

TEST(History, ALayoutShowsTheBlocksThatLive) {
  const Finding missing = shown([](Layout& live) { live.clear(); });
  EXPECT_TRUE(missing.empty()) << "it shows nothing: " << missing.text;
  const Finding one_missing = shown([](Layout& live) {
    if (live.size() > 1) live.erase(live.begin());
  });
  EXPECT_EQ(one_missing.cause, cause::kLayout);
  EXPECT_EQ(one_missing.text, "walk shows 1 active blocks, 2 are handed out");
  const Finding idle = shown([](Layout& live) {
    for (auto& [address, info] : live) info.state = BlockState::kFree;
  });
  EXPECT_EQ(idle.text, "walk shows 0 active blocks, 1 are handed out");
  const Finding other_size = shown([](Layout& live) { live.begin()->second.requested_bytes = 3; });
  EXPECT_EQ(other_size.text, "walk shows block #0 with 3 requested bytes, it has 1000");
  const Finding shifted = shown([](Layout& live) {
    BlockInfo& info = live.begin()->second;
    info.address = static_cast<std::uint64_t>(info.address) + 512;
  });
  EXPECT_THAT(shifted.text,
              AllOf(StartsWith("walk shows a block at 0x"), HasSubstr("where the one before it ends at 0x")));
}

TEST(History, BlocksFillTheSegmentsThatALayoutShows) {
  const Finding gap = found_in({.shows_layout = true, .beyond = 512}, {taken(0, 512), taken(7, 2048)});
  EXPECT_EQ(gap.cause, cause::kLayout);
  EXPECT_THAT(gap.text,
              AllOf(StartsWith("walk shows a segment of 1024 bytes at 0x"), HasSubstr("whose blocks are 512 bytes")));
}

TEST(History, ALayoutThatShowsABlockElsewhereDoesNotShowIt) {
  const Finding elsewhere = shown([](Layout& live) {
    if (live.size() < 2) return;
    auto moved = live.extract(live.begin());
    moved.key() += std::uintptr_t{1} << 40;
    moved.mapped().address = moved.key();
    live.insert(std::move(moved));
  });
  EXPECT_EQ(elsewhere.cause, cause::kLayout);
  EXPECT_EQ(elsewhere.text, "walk does not show block #0");
}

TEST(History, BlocksThatAreLargerThanTheDeviceGaveAreCountedSo) {
  RunSettings figures;
  figures.only = {cause::kFigures};
  const Finding finding =
      found_in({.handed_out = [](Block& block) { block.bytes += 512; }}, {taken(0, 1000), taken(1, 10)}, figures);
  EXPECT_EQ(finding.cause, cause::kFigures);
  EXPECT_EQ(finding.text,
            "blocks of 1536 bytes in all are handed out, but only 1024 were taken from the device: is Block::bytes the "
            "size after rounding?");
}

TEST(History, WhatIsNotGivenBackIsALeak) {
  const Finding finding = found_in({.never_releases = true}, {taken(0, 1000), given_back(0)});
  EXPECT_EQ(finding.cause, cause::kLeak);
  EXPECT_EQ(finding.text, "after the allocator was destroyed: 1024 bytes were not given back to the device: 1 segment");
}

}  // namespace
}  // namespace tenon::conformance
