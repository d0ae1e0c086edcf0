// The kit finds what it is there to find: each allocator here breaks one promise, and the check of that promise fails.
#include <tenon/conformance/conformance.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon {
namespace {

enum class Flaw {
  kNone,
  kGivesTooLittle,     // rounds sizes down
  kWraps,              // sizes near the end of the number range wrap around when rounded
  kNeverReuses,        // freed blocks lie about until the end
  kCountsWrong,        // reports a peak of its own that never was
  kScribbles,          // writes into a block that it has handed out
  kDependsOnTheWorld,  // which block comes next depends on what ran before
  kTrustsTheOwner,     // a block that another thread frees is cached twice
  kForgetsTheDead,     // the fifth thread gets the first one's records, live blocks included
  kReleasesEarly,      // gives memory back while streams may still use it
  kDropsItsCache,      // forgets what it caches when the device is exhausted
  kOverlaps,           // hands a block out twice
  kMisaligns,          // every address is 32 bytes off
  kIgnoresOtherUses,   // record_use does nothing, yet freed blocks are cached
  kKeepsOnTrim,        // claims to give back, does not
  kTrimsAllOrNothing,  // trim does nothing unless it may keep nothing
  kLeaks,              // forgets its cache at the end
  kLosesOnFailure,     // counts a block before it has it
  kRemembersWrongSize  // releases with another size than it acquired
};

/// One free list per size and stream; not thread-safe: the host serialises.
class Bins final : public Allocator {
 public:
  Bins(MemorySource& source, Flaw flaw) : source_(source), flaw_(flaw) {}
  ~Bins() override {
    if (flaw_ == Flaw::kLeaks) return;
    if (flaw_ == Flaw::kDependsOnTheWorld) ++world();
    try {
      source_.synchronize();
    } catch (const Error&) {
    }
    for (auto& [address, bytes] : all_) source_.release(address, bytes);
  }

  Block allocate(const Request& request) override {
    if (request.bytes > GiB * 64 && flaw_ != Flaw::kWraps) throw OutOfMemory({.requested_bytes = request.bytes});
    std::size_t bytes = std::max<std::size_t>(align_up(request.bytes + (flaw_ == Flaw::kMisaligns ? 32 : 0), 512), 512);
    if (flaw_ == Flaw::kGivesTooLittle && bytes > 512) bytes -= 512;
    if (flaw_ == Flaw::kForgetsTheDead) forget_the_dead();
    auto& bin = bins_[{bytes, request.stream.id}];
    void* address = nullptr;
    if (flaw_ == Flaw::kScribbles && last_) *static_cast<char*>(last_) ^= 1;
    if (!bin.empty()) {
      if (flaw_ == Flaw::kDependsOnTheWorld && world() % 2 != 0) std::swap(bin.front(), bin.back());
      address = bin.back();
      if (flaw_ != Flaw::kOverlaps || ++reused_ % 3 != 0) bin.pop_back();
    } else {
      if (flaw_ == Flaw::kLosesOnFailure) ++live_;
      address = source_.acquire(bytes);
      if (!address && flaw_ == Flaw::kDropsItsCache) {
        for (auto& [key, cached] : bins_)
          for (void* lost : cached) all_.erase(lost);
        bins_.clear();
        throw OutOfMemory({.requested_bytes = request.bytes});
      }
      if (!address) {
        trim(0);
        address = source_.acquire(bytes);
      }
      if (!address) throw OutOfMemory({.requested_bytes = request.bytes});
      if (flaw_ == Flaw::kLosesOnFailure) --live_;
      all_[address] = bytes;
    }
    owners_[address] = this_thread();
    streams_[address] = request.stream.id;
    last_ = address;
    char* data = static_cast<char*>(address) + (flaw_ == Flaw::kMisaligns ? 32 : 0);
    return {.data = data, .bytes = bytes - (flaw_ == Flaw::kMisaligns ? 32 : 0), .cookie = address, .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (!all_.contains(block.cookie)) return;
    const std::size_t bytes = all_.at(block.cookie);
    if (last_ == block.cookie) last_ = nullptr;
    if (flaw_ == Flaw::kNeverReuses) return;
    const bool elsewhere = uses_.erase(block.cookie) > 0 || last_use != block.request.stream;
    if (elsewhere && flaw_ != Flaw::kIgnoresOtherUses) {
      try {
        source_.synchronize();
      } catch (const Error&) {
        return;  // it stays out until the end
      }
    }
    auto& bin = bins_[{bytes, block.request.stream.id}];
    bin.push_back(block.cookie);
    if (flaw_ == Flaw::kTrustsTheOwner && owners_[block.cookie] != this_thread()) bin.push_back(block.cookie);
  }

  void record_use(const Block& block, StreamRef stream) override {
    if (stream != block.request.stream) uses_[block.cookie] = true;
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (keep_bytes != 0 && flaw_ == Flaw::kTrimsAllOrNothing) return 0;
    if (flaw_ != Flaw::kReleasesEarly) source_.synchronize();
    std::size_t cached = 0, given = 0;
    for (const auto& [key, bin] : bins_) cached += key.first * bin.size();
    if (flaw_ == Flaw::kKeepsOnTrim) return cached - std::min(cached, keep_bytes);
    for (auto& [key, bin] : bins_) {
      for (; !bin.empty() && cached - given > keep_bytes; bin.pop_back()) {
        given += key.first;
        const auto owned = all_.find(bin.back());
        if (owned == all_.end()) continue;  // a flaw has put it there twice
        source_.release(owned->first, owned->second + (flaw_ == Flaw::kRemembersWrongSize ? 512 : 0));
        owners_.erase(owned->first);
        all_.erase(owned);
      }
    }
    return given;
  }

  void report(PolicyStats& stats) const override {
    if (flaw_ != Flaw::kCountsWrong) return;
    stats.has_pools = true;
    for (const auto& [address, bytes] : all_) stats.allocated_bytes[0].current += static_cast<std::int64_t>(bytes);
    for (const auto& [key, bin] : bins_)
      stats.allocated_bytes[0].current -= static_cast<std::int64_t>(key.first * bin.size());
    stats.allocated_bytes[0].peak = stats.allocated_bytes[0].current + 1;
  }

  void check_invariants() const override {
    if (live_ != 0) throw Error("bins: a block that was never taken is counted");
  }

 private:
  /// Numbered from 0: the system hands the ids of dead threads out again.
  static int this_thread() {
    static std::atomic<int> next{0};
    thread_local const int number = next++;
    return number;
  }
  static int& world() {
    static int runs = 0;
    return runs;
  }
  void forget_the_dead() {
    const auto me = this_thread();
    if (std::find(known_.begin(), known_.end(), me) != known_.end()) return;
    known_.push_back(me);
    if (known_.size() % 5 != 0) return;
    for (auto& [address, owner] : owners_) {
      auto& bin = bins_[{all_.at(address), streams_.at(address)}];
      if (owner == known_.front() && std::find(bin.begin(), bin.end(), address) == bin.end()) bin.push_back(address);
    }
    known_.erase(known_.begin());
  }

  MemorySource& source_;
  const Flaw flaw_;
  void* last_ = nullptr;
  std::vector<int> known_;
  std::map<void*, int> owners_;
  std::map<void*, std::uint64_t> streams_;
  int live_ = 0;
  int reused_ = 0;
  std::map<void*, std::size_t> all_;
  std::map<void*, bool> uses_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<void*>> bins_;
};

conformance::Report report_on(Flaw flaw, const std::string& only = {}) {
  const AllocatorInfo info{.name = "bins", .create = [flaw](const AllocatorContext& context) {
                             return std::make_unique<Bins>(context.source, flaw);
                           }};
  return conformance::run(info, nullptr, {.only = only});
}

TEST(Kit, PassesAnAllocatorWithoutFlaws) {
  const conformance::Report report = report_on(Flaw::kNone);
  EXPECT_TRUE(report.passed()) << report.text();
  EXPECT_EQ(report.checks.size(), conformance::check_names().size());
}

TEST(Kit, FindsOverlapAndShowsAShortHistory) {
  const conformance::Report report = report_on(Flaw::kOverlaps, "never_overlaps");
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.checks[0].failure.find("overlaps the live block"), std::string::npos) << report.text();
  EXPECT_NE(report.checks[0].failure.find("shortest history"), std::string::npos);
}

/// As the C library and AddressSanitizer do where they find the heap broken.
class LoudDeath final : public Allocator {
 public:
  Block allocate(const Request&) override {
    std::fputs("free(): double free detected\n", stderr);
    std::abort();
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
};

// Shrinking dies as often as it takes, and other checks for the same cause.
TEST(Kit, KeepsWhatADeathSaysOnce) {
  const AllocatorInfo info{.name = "loud",
                           .create = [](const AllocatorContext&) { return std::make_unique<LoudDeath>(); }};
  testing::internal::CaptureStderr();
  const conformance::Report report = conformance::run(info, nullptr, {.histories = 2});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it is the report's to say";
  std::string said;
  for (const conformance::CheckResult& check : report.checks) said += check.said;
  EXPECT_EQ(said, "free(): double free detected\n") << report.text();
}

/// Ends its process with a code when that ends in good order, as ThreadSanitizer does where it has found a race.
class LateDeath final : public Allocator {
 public:
  explicit LateDeath(MemorySource& source) : source_(source) {
    static std::FILE* const last_words =
        ::fopencookie(nullptr, "w",
                      {.read = nullptr,
                       .write = [](void*, const char*, std::size_t) -> ssize_t { ::_exit(66); },
                       .seek = nullptr,
                       .close = nullptr});
    std::fputs("said when all is written out", last_words);
  }
  Block allocate(const Request& request) override {
    return {.data = source_.acquire(align_up(request.bytes, 512)),
            .bytes = align_up(request.bytes, 512),
            .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }

 private:
  MemorySource& source_;
};

TEST(Kit, FailsACheckWhoseProcessEndsBadlyAfterIt) {
  const AllocatorInfo info{.name = "late", .create = [](const AllocatorContext& context) {
                             return std::make_unique<LateDeath>(context.source);
                           }};
  const conformance::Report report = conformance::run(info, nullptr, {.only = "serves_every_size"});
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.checks[0].failure.find("its process ended with code 66"), std::string::npos) << report.text();
}

#ifdef __SANITIZE_THREAD__
/// Says that it is thread-safe, and counts without a lock.
class Racy final : public Allocator {
 public:
  explicit Racy(MemorySource& source) : source_(source) {}
  Block allocate(const Request& request) override {
    ++calls_;
    const std::size_t bytes = align_up(request.bytes, 512);
    void* const data = source_.acquire(bytes);
    if (!data) throw OutOfMemory({.requested_bytes = request.bytes});
    return {.data = data, .bytes = bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }
  bool is_thread_safe() const override { return true; }

 private:
  MemorySource& source_;
  std::size_t calls_ = 0;
};

TEST(Kit, FindsARaceUnderThreadSanitizer) {
  const AllocatorInfo info{
      .name = "racy", .create = [](const AllocatorContext& context) { return std::make_unique<Racy>(context.source); }};
  // Long enough for two threads to be at it at once, whatever else the machine does.
  const conformance::Report report =
      conformance::run(info, nullptr, {.history_length = 30'000, .only = "takes_frees_from_other_threads"});
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.text().find("data race"), std::string::npos) << report.text();
}
#endif

TEST(Kit, StopsWhereItIsAsked) {
  const AllocatorInfo info{.name = "bins", .create = [](const AllocatorContext& context) {
                             return std::make_unique<Bins>(context.source, Flaw::kNone);
                           }};
  std::size_t done = 0;
  const conformance::Report report = conformance::run(
      info, nullptr,
      {.histories = 2, .after_each = [&](const auto&) { ++done; }, .is_stopping = [&] { return done == 2; }});
  EXPECT_EQ(report.checks.size(), 2U);
  EXPECT_EQ(report.left_out, conformance::check_names().size() - 2);
  EXPECT_NE(report.summary().find("2 passed, 0 failed, 21 not run"), std::string::npos) << report.summary();
}

TEST(Kit, FindsMisalignment) { EXPECT_FALSE(report_on(Flaw::kMisaligns, "aligns").passed()); }

TEST(Kit, FindsReuseBeforeAnotherStreamIsDone) {
  const conformance::Report report = report_on(Flaw::kIgnoresOtherUses, "respects_streams");
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.checks[0].failure.find("has not got there yet"), std::string::npos) << report.text();
  // Take a block, let another stream use it, free it, take it again: five lines at most.
  const std::string& text = report.checks[0].failure;
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 7) << text;
}

TEST(Kit, FindsATrimThatKeeps) { EXPECT_FALSE(report_on(Flaw::kKeepsOnTrim, "trims").passed()); }
TEST(Kit, FindsALeak) { EXPECT_FALSE(report_on(Flaw::kLeaks, "frees_all_at_the_end").passed()); }
TEST(Kit, FindsStateLostWhenTheSourceFails) {
  EXPECT_FALSE(report_on(Flaw::kLosesOnFailure, "survives_a_dead_device").passed());
}
TEST(Kit, FindsMisuseOfTheSource) { EXPECT_FALSE(report_on(Flaw::kRemembersWrongSize, "trims").passed()); }

struct Mutant {
  const char* name;
  Flaw flaw;
  const char* check;
  const char* words;  ///< in the failure
};
void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

class KitFinds : public ::testing::TestWithParam<Mutant> {};

// Each of these flaws is found by the check that is there for it, in words that say what is wrong.
TEST_P(KitFinds, TheFlaw) {
  const auto names = conformance::check_names();
  ASSERT_NE(std::find(names.begin(), names.end(), GetParam().check), names.end());
  const conformance::Report report = report_on(GetParam().flaw, GetParam().check);
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.checks[0].failure.find(GetParam().words), std::string::npos) << report.text();
}

INSTANTIATE_TEST_SUITE_P(
    Mutants, KitFinds,
    ::testing::Values(
        Mutant{"Misaligns", Flaw::kMisaligns, "aligns", "at an alignment of"},
        Mutant{"GivesTooLittle", Flaw::kGivesTooLittle, "serves_every_size", "gave a block of"},
        Mutant{"Wraps", Flaw::kWraps, "refuses_huge_sizes", "were granted"},
        Mutant{"NeverReuses", Flaw::kNeverReuses, "reuses_memory", "needs"},
        Mutant{"TrimsAllOrNothing", Flaw::kTrimsAllOrNothing, "trims", "still reserved"},
        Mutant{"KeepsOnTrim", Flaw::kKeepsOnTrim, "trims", "still reserved"},
        Mutant{"DropsItsCache", Flaw::kDropsItsCache, "survives_out_of_memory", "needs"},
        Mutant{"Leaks", Flaw::kLeaks, "frees_all_at_the_end", "were not given back"},
        Mutant{"CountsWrong", Flaw::kCountsWrong, "counts", "the policy reports"},
        Mutant{"Scribbles", Flaw::kScribbles, "keeps_payloads", "changed"},
        Mutant{"Overlaps", Flaw::kOverlaps, "never_overlaps", "overlaps the live block"},
        Mutant{"IgnoresOtherUses", Flaw::kIgnoresOtherUses, "respects_streams", "has not got there yet"},
        Mutant{"ReleasesEarly", Flaw::kReleasesEarly, "respects_streams", "went back to the device while"},
        Mutant{"DropsItsCacheOnASmallDevice", Flaw::kDropsItsCache, "survives_a_small_device", "destroyed"},
        Mutant{"DependsOnTheWorld", Flaw::kDependsOnTheWorld, "is_deterministic", "differ from allocation"},
        Mutant{"DropsItsCacheOnce", Flaw::kDropsItsCache, "survives_one_failure", "when call"},
        Mutant{"LosesOnFailure", Flaw::kLosesOnFailure, "survives_a_dead_device", "and every later one"},
        Mutant{"TrustsTheOwner", Flaw::kTrustsTheOwner, "takes_frees_from_other_threads", "overlaps a live one"},
        Mutant{"ForgetsTheDead", Flaw::kForgetsTheDead, "survives_dying_threads", "overlaps a live one"}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tenon
