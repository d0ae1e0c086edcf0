// One history on one allocator that never waits: which streams it may do that for, what the allocator is asked, and how
// a history ends.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;

struct Rush {
  std::vector<Request> requests;
  std::vector<std::pair<std::size_t, std::uint64_t>> freed;  ///< bytes asked for, and the last user
  std::vector<std::size_t> kept;                             ///< as trims were told to
  std::size_t wrong_bytes = 0;                               ///< added to what goes back
  bool is_broken = false;                                    ///< breaks a promise by itself
};

/// One list of what is free, whatever uses it, which a trim gives back.
class Rushing final : public Allocator {
 public:
  Rushing(MemorySource& source, Rush& rush) : source_(source), rush_(rush) {}
  ~Rushing() override {
    source_.synchronize();
    for (const auto& [address, bytes] : all_) source_.release(address, bytes + rush_.wrong_bytes);
  }
  Block allocate(const Request& request) override {
    if (rush_.is_broken) throw BrokenPromise({cause::kRequest, "it was lost"});
    rush_.requests.push_back(request);
    void* address = nullptr;
    if (!free_.empty()) {
      address = free_.back();
      free_.pop_back();
    } else {
      address = source_.acquire(1 * MiB);
    }
    if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    all_[address] = 1 * MiB;
    return {.data = address, .bytes = 1 * MiB, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    rush_.freed.emplace_back(block.request.bytes, last_use.id);
    free_.push_back(block.data);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    rush_.kept.push_back(keep_bytes);
    const std::size_t given = free_.size() * MiB;
    for (void* const address : std::exchange(free_, {})) {
      source_.release(address, 1 * MiB);
      all_.erase(address);
    }
    return given;
  }

 private:
  MemorySource& source_;
  Rush& rush_;
  std::map<void*, std::size_t> all_;
  std::vector<void*> free_;
};

Finding rushed(Rush& rush, const Operations& history, const RunSettings& settings = {}, Journal* journal = nullptr) {
  const AllocatorInfo info{.name = "rushing", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Rushing>(context.source, rush);
                           }};
  const OptionSchema none;
  const Options options(none);
  return run_history({info, options, journal}, history, settings);
}
Finding rushed(const Operations& history, const RunSettings& settings = {}) {
  Rush rush;
  return rushed(rush, history, settings);
}

Operation take(std::uint32_t slot, std::uint64_t stream) { return {.slot = slot, .bytes = 1000, .stream = stream}; }
Operation drop(std::uint32_t slot, std::uint64_t last_use) {
  return {.kind = Operation::kFree, .slot = slot, .stream = last_use};
}
Operation use(std::uint32_t slot, std::uint64_t stream) {
  return {.kind = Operation::kUse, .slot = slot, .stream = stream};
}
Operation complete(std::uint64_t stream) { return {.kind = Operation::kComplete, .stream = stream}; }
const Operation kTrimAll{.kind = Operation::kTrim};

TEST(HistoryStreams, ABlockIsForItsOwnStreamAtOnce) {
  EXPECT_EQ(rushed({take(0, 0), drop(0, 0), take(1, 0)}).text, "");
  EXPECT_EQ(rushed({take(0, 3), drop(0, 3), take(1, 3)}).text, "");
}

TEST(HistoryStreams, ABlockIsForOthersWhenAllWhoUsedItHaveGotThere) {
  const auto reuse = " for stream 0 was freed while stream ";
  for (const auto& [history, user] :
       {std::pair(Operations{take(0, 5), drop(0, 5)}, 5), std::pair(Operations{take(0, 0), use(0, 1), drop(0, 0)}, 1),
        std::pair(Operations{take(0, 0), drop(0, 2)}, 2),
        std::pair(Operations{take(0, 0), use(0, 4), use(0, 3), drop(0, 0), complete(4)}, 3)}) {
    Operations again = history;
    again.push_back(take(1, 0));
    const Finding finding = rushed(again);
    EXPECT_EQ(finding.cause, cause::kStreams);
    EXPECT_THAT(finding.text,
                ContainsRegex(reuse + std::to_string(user) + " still used it, and that stream has not got there yet$"));
    again.insert(again.end() - 1, complete(static_cast<std::uint64_t>(user)));
    EXPECT_EQ(rushed(again).text, "") << user;
    again.erase(again.end() - 2);
    RunSettings settings;
    settings.manual_completion = false;
    EXPECT_EQ(rushed(again, settings).text, "") << "all get there by themselves";
    settings = {};
    settings.only = {cause::kOverlap};
    EXPECT_EQ(rushed(again, settings).text, "") << "nobody asked";
  }
}

TEST(HistoryStreams, MemoryGoesBackWhenAllWhoUsedItHaveGotThere) {
  const Operations early = {take(0, 0), use(0, 1), drop(0, 0), complete(0), kTrimAll};
  for (const bool each_step : {true, false}) {
    RunSettings settings;
    settings.check_each_step = each_step;
    const Finding finding = rushed(early, settings);
    EXPECT_EQ(finding.cause, cause::kStreams);
    EXPECT_THAT(finding.text, ContainsRegex("^\\[0x[0-9a-f]+, 0x[0-9a-f]+\\) went back to the device while stream 1 "
                                            "still used it$"));
  }
  EXPECT_EQ(rushed({take(0, 0), use(0, 1), drop(0, 0), complete(0), complete(1), kTrimAll}).text, "");
}

TEST(HistoryStreams, AMisuseAtTheVeryEndIsFoundAndIsNoLeak) {
  Rush rush{.wrong_bytes = 512};
  const Finding finding = rushed(rush, {take(0, 0)});
  EXPECT_EQ(finding.cause, cause::kMisuse);
  EXPECT_THAT(finding.text, ContainsRegex("^release\\(0x[0-9a-f]+, 1049088\\): it was acquired with 1048576 bytes$"));
}

TEST(HistoryStreams, ABrokenPromiseIsTheFinding) {
  Rush rush{.is_broken = true};
  const Finding finding = rushed(rush, {take(0, 0)});
  EXPECT_EQ(finding.cause, cause::kRequest);
  EXPECT_EQ(finding.text, "it was lost");
}

TEST(HistoryStreams, TheAllocatorIsAskedForWhatTheHistorySays) {
  Rush rush;
  EXPECT_EQ(rushed(rush, {{.slot = 0, .bytes = 77, .alignment = 256, .stream = 3},
                          {.slot = kPurposeCount + 2, .bytes = 9, .alignment = 64},
                          {.kind = Operation::kTrim, .bytes = 4096}})
                .text,
            "");
  ASSERT_EQ(rush.requests.size(), 2U);
  EXPECT_EQ(rush.requests[0].bytes, 77U);
  EXPECT_EQ(rush.requests[0].alignment, 256U);
  EXPECT_EQ(rush.requests[0].stream.id, 3U);
  EXPECT_EQ(rush.requests[0].purpose, static_cast<Purpose>(0));
  EXPECT_EQ(rush.requests[1].purpose, static_cast<Purpose>(2));
  EXPECT_THAT(rush.kept, ElementsAre(4096));
}

TEST(HistoryStreams, AtTheEndEveryOtherBlockIsFreedAndTheRestIsTheTeardowns) {
  Rush rush;
  Operations history;
  for (std::uint32_t slot = 0; slot < 5; ++slot)
    history.push_back({.slot = slot, .bytes = 100 + slot, .stream = slot + 10});
  EXPECT_EQ(rushed(rush, history).text, "");
  using Freed = std::pair<std::size_t, std::uint64_t>;
  EXPECT_THAT(rush.freed, ElementsAre(Freed(100, 10), Freed(102, 12), Freed(104, 14)));
}

TEST(HistoryStreams, WhenAllIsFreedTheDeviceWorksAgain) {
  RunSettings lost;
  lost.fault = {.index = 1, .from_then_on = true, .order_calls_too = true};
  EXPECT_EQ(rushed({take(0, 0), take(1, 0)}, lost).text, "") << "the destructor waits for it";
}

TEST(HistoryStreams, AreInTheJournalWithTheirSettings) {
  Journal journal;
  Rush rush;
  RunSettings settings;
  settings.capacity_bytes = 3 * MiB;
  settings.fault = {.index = 50};
  settings.only = {cause::kRequest};
  EXPECT_EQ(rushed(rush, {take(0, 0), complete(4)}, settings, &journal).text, "");
  EXPECT_EQ(journal.settings().capacity_bytes, 3 * MiB);
  EXPECT_EQ(journal.settings().fault.index, 50);
  EXPECT_TRUE(journal.judges_requests());
  EXPECT_EQ(journal.calls(), 1U) << "of the device; those of an allocator are written by who watches it";
  EXPECT_EQ(to_string(journal.operations()), "    stream 4 gets there\n");
  EXPECT_EQ(journal.in_flight(), "");
}

}  // namespace
}  // namespace tenon::conformance
