// Checks with a fixed plot in this process: an allocator that does one thing wrong, and the words for that.
#include <tenon/conformance/conformance.h>

#include "support/has_sanitizer.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What one allocator of a test does otherwise than Keeper does.
struct Habits {
  std::function<void(Block&)> handed_out;
  std::function<void(const Request&)> asked;
  std::function<void(const Request&, bool is_first_try)> refused;  ///< before it gives back what it keeps
  std::function<std::size_t(std::size_t kept, std::size_t keep)> to_give;
  std::function<std::size_t(std::size_t given)> says_given;
  std::function<void(PolicyStats&, std::size_t kept)> report;
  bool forgets_freed = false, leaks = false, hoards_records = false;
};

/// Keeps what is freed, by size and stream, and gives it back when it is asked to or when the device has no more.
class Keeper final : public Allocator {
 public:
  Keeper(MemorySource& source, const Habits& habits) : source_(source), habits_(habits) {}
  ~Keeper() override {
    if (habits_.leaks) return;
    source_.synchronize();
    for (const auto& [address, bytes] : all_) source_.release(address, bytes);
  }
  Block allocate(const Request& request) override {
    if (habits_.asked) habits_.asked(request);
    if (request.bytes > std::size_t{1} << 50) throw OutOfMemory({.requested_bytes = request.bytes});
    const std::size_t bytes = align_up(request.bytes, 512);
    std::vector<void*>& kept = kept_[{bytes, request.stream.id}];
    void* address = nullptr;
    if (!kept.empty()) {
      address = kept.back();
      kept.pop_back();
    } else {
      address = source_.acquire(bytes);
      if (address == nullptr && habits_.refused) habits_.refused(request, true);
      if (address == nullptr) {
        trim(0);
        address = source_.acquire(bytes);
      }
      if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
      all_[address] = bytes;
    }
    Block block{.data = address, .bytes = bytes, .cookie = address, .request = request};
    if (habits_.handed_out) habits_.handed_out(block);
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (habits_.forgets_freed) return;
    if (habits_.hoards_records) records_.emplace_back(40, 'x');
    if (last_use != block.request.stream) source_.synchronize();
    kept_[{all_.at(block.cookie), block.request.stream.id}].push_back(block.cookie);
  }
  void record_use(const Block&, StreamRef) override {}
  std::size_t trim(std::size_t keep_bytes) override {
    source_.synchronize();
    const std::size_t kept = kept_bytes();
    std::size_t target = kept > keep_bytes ? kept - keep_bytes : 0, given = 0;
    if (habits_.to_give) target = habits_.to_give(kept, keep_bytes);
    for (auto& [key, blocks] : kept_) {
      for (; !blocks.empty() && given < target; blocks.pop_back()) {
        source_.release(blocks.back(), key.first);
        all_.erase(blocks.back());
        given += key.first;
      }
    }
    return habits_.says_given ? habits_.says_given(given) : given;
  }
  void report(PolicyStats& stats) const override {
    if (habits_.report) habits_.report(stats, kept_bytes());
  }

 private:
  std::size_t kept_bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, blocks] : kept_) sum += key.first * blocks.size();
    return sum;
  }

  MemorySource& source_;
  const Habits habits_;
  std::map<void*, std::size_t> all_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<void*>> kept_;
  std::vector<std::string> records_;
};

CheckResult checked(const std::string& check, const Habits& habits, bool is_isolated = false) {
  const AllocatorInfo info{.name = "keeper", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Keeper>(context.source, habits);
                           }};
  const Report report =
      run(info, nullptr, {.histories = 2, .history_length = 60, .only = check, .is_isolated = is_isolated});
  return report.checks.empty() ? CheckResult{} : report.checks.front();
}
std::string failed(const std::string& check, const Habits& habits) { return checked(check, habits).failure; }

TEST(KitChecks, PassWhatKeepsItsPromises) {
  for (const char* check :
       {"frees_all_at_the_end", "serves_every_size", "aligns", "reuses_memory", "trims", "keeps_payloads",
        "is_deterministic", "refuses_huge_sizes", "survives_out_of_memory", "retries_before_out_of_memory", "counts",
        "reports_truly", "needs_no_growing_memory", "survives_a_small_device", "survives_one_failure"}) {
    const CheckResult result = checked(check, {});
    EXPECT_EQ(result.failure, "") << check;
    EXPECT_EQ(result.name, check);
    EXPECT_EQ(result.not_applicable, "") << check;
  }
}

TEST(KitChecks, ALayoutThatIsNotShownIsNotApplicable) {
  EXPECT_THAT(checked("shows_its_layout", {}).not_applicable, StartsWith("walk() shows no segments"));
}

TEST(KitChecks, SayWhichSizeIsNotServed) {
  const auto small_from = [](std::size_t least) {
    return Habits{.handed_out = [least](Block& block) {
      if (block.request.bytes >= least) block.bytes = block.request.bytes - 1;
    }};
  };
  EXPECT_EQ(failed("serves_every_size", small_from(1)), "1 bytes gave a block of 0");
  EXPECT_EQ(failed("serves_every_size", small_from(4097)), "4097 bytes gave a block of 4096")
      << "beside a power of two";
  EXPECT_EQ(failed("serves_every_size", small_from((std::size_t{1} << 34) + 1)),
            "17179869185 bytes gave a block of 17179869184")
      << "the largest";
  EXPECT_EQ(failed("serves_every_size", small_from((std::size_t{1} << 34) + 2)), "");
}

TEST(KitChecks, SayWhichAlignmentIsNotKept) {
  const auto off = [](std::size_t from) {
    return Habits{.handed_out = [from](Block& block) {
      if (block.request.alignment < from) return;
      block.data = static_cast<char*>(block.data) + 32;
      block.bytes -= 32;
    }};
  };
  EXPECT_THAT(failed("aligns", off(64)), StartsWith("1 bytes at an alignment of 64: got 0x"));
  EXPECT_THAT(failed("aligns", off(512)), StartsWith("1 bytes at an alignment of 512: got 0x"));
}

TEST(KitChecks, SayWhatIsLeftAtTheEnd) {
  EXPECT_THAT(failed("frees_all_at_the_end", {.leaks = true}),
              testing::ContainsRegex("^after the allocator was destroyed: [0-9]+ bytes were not given back to the "
                                     "device: [0-9]+ segments$"));
}

TEST(KitChecks, ATrimLeavesAsMuchAsItMayAndNoMore) {
  EXPECT_THAT(
      failed("trims", {.to_give = [](std::size_t kept, std::size_t keep) { return keep == 0 ? kept : 0; }}),
      testing::ContainsRegex("nothing is handed out, and after trim\\([0-9]+\\) [0-9]+ bytes are still reserved"));
  EXPECT_THAT(failed("trims", {.to_give = [](std::size_t, std::size_t) { return std::size_t{1}; }}),
              testing::ContainsRegex("[0-9]+ bytes were cached, and trim\\([0-9]+\\) gave [0-9]+ of them back"));
  EXPECT_THAT(failed("trims", {.says_given = [](std::size_t given) { return given + 512; }}),
              testing::ContainsRegex("trim says [0-9]+ bytes, the source got [0-9]+"));
  int calls = 0;
  EXPECT_THAT(failed("trims", {.says_given = [&](std::size_t given) { return ++calls == 6 ? 512 : given; }}),
              HasSubstr("a second trim(0) claims to have given something back"));
}

TEST(KitChecks, MemoryThatDoesNotComeBackRunsOut) {
  EXPECT_THAT(failed("reuses_memory", {.forgets_freed = true}), StartsWith("an error where none may be: "));
}

TEST(KitChecks, PayloadsAreReadToTheLastByte) {
  for (const bool first : {true, false}) {
    Block last;
    const Habits scribbles{.handed_out = [&](Block& block) {
      if (last.data != nullptr && last.bytes > 1024)
        static_cast<unsigned char*>(last.data)[first ? 0 : last.bytes - 1] ^= 1;
      last = block;
    }};
    EXPECT_THAT(failed("keeps_payloads", scribbles),
                testing::ContainsRegex("the bytes of a live block of [0-9]+ changed"))
        << "seen when it is freed: " << first;
  }
}

TEST(KitChecks, WhatCannotBeServedIsOutOfMemoryAndNoOtherError) {
  const auto on_huge = [](const std::function<void(const Request&)>& does) {
    return Habits{.asked = [does](const Request& request) {
      if (request.bytes > 1 * GiB) does(request);
    }};
  };
  EXPECT_THAT(failed("refuses_huge_sizes", on_huge([](const Request&) { throw Error("no"); })),
              StartsWith("18446744073709551615 bytes: 'no"));
  int calls = 0;
  EXPECT_THAT(failed("refuses_huge_sizes", on_huge([&](const Request&) {
                       if (++calls == 6) throw Error("not that either");
                     })),
              StartsWith("2147483648 bytes: 'not that either"))
      << "twice the device is the last";
}

TEST(KitChecks, FiguresOfAPolicyAgreeWithTheLedger) {
  const auto reports = [](const std::function<void(PolicyStats&)>& change) {
    return Habits{.report = [change](PolicyStats& stats, std::size_t) {
      stats.has_pools = true;
      change(stats);
    }};
  };
  EXPECT_THAT(failed("counts", reports([](PolicyStats&) {})),
              StartsWith("the policy reports allocation.all.current as 0, the ledger beside it says "));
}

TEST(KitChecks, WhatIsReportedOfTheCacheCanBeHad) {
  EXPECT_THAT(
      failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t kept) { stats.cached_bytes = kept / 2; }}),
      testing::ContainsRegex("nothing is handed out and [0-9]+ bytes are reserved; report\\(\\) gives cached_bytes "
                             "as [0-9]+"));
  EXPECT_EQ(
      failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t kept) { stats.cached_bytes = kept; }}), "");
  EXPECT_THAT(failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t) { stats.retries = 3; }}),
              HasSubstr("the device refused nothing and got nothing back; report() gives retries as 3"));
}

TEST(KitChecks, RecordsThatOnlyGrowAreFound) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "it has a heap of its own, which the check cannot read";
  EXPECT_THAT(failed("needs_no_growing_memory", {.hoards_records = true}),
              testing::ContainsRegex("the host's memory grows by .* in 48 rounds of the same 200 calls"));
}

TEST(KitChecks, TheSecondFailureOfACauseIsToldUnderTheFirst) {
  const Habits leaks{.leaks = true};
  const AllocatorInfo info{.name = "keeper", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Keeper>(context.source, leaks);
                           }};
  const Report report =
      run(info, nullptr, {.histories = 1, .history_length = 20, .only = "s", .skip = {"counts"}, .is_isolated = false});
  ASSERT_GT(report.checks.size(), 3U);
  EXPECT_EQ(report.checks[0].name, "frees_all_at_the_end");
  EXPECT_EQ(report.checks[0].state(), "FAILED");
  EXPECT_EQ(report.checks[1].name, "serves_every_size");
  EXPECT_EQ(report.checks[1].state(), "as in");
  EXPECT_EQ(report.checks[1].same_as, "frees_all_at_the_end");
  EXPECT_THAT(report.checks[1].failure, StartsWith("after the allocator was destroyed: "));
}

}  // namespace
}  // namespace tenon::conformance
