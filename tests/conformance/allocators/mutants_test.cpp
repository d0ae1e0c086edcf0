// The kit finds what it is there to find: each allocator here breaks one promise, and the check of that promise fails.
#include <tenon/conformance/conformance.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace tenon {
namespace {

enum class Flaw {
  kNone,
  kOverlaps,           // hands a block out twice
  kMisaligns,          // every address is 32 bytes off
  kIgnoresOtherUses,   // record_use does nothing, yet freed blocks are cached
  kKeepsOnTrim,        // claims to give back, does not
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
    try {
      source_.synchronize();
    } catch (const Error&) {
    }
    for (auto& [address, bytes] : all_) source_.release(address, bytes);
  }

  Block allocate(const Request& request) override {
    if (request.bytes > GiB * 64) throw OutOfMemory({.requested_bytes = request.bytes});
    const std::size_t bytes = align_up(request.bytes + (flaw_ == Flaw::kMisaligns ? 32 : 0), 512);
    auto& bin = bins_[{bytes, request.stream.id}];
    void* address = nullptr;
    if (!bin.empty()) {
      address = bin.back();
      if (flaw_ != Flaw::kOverlaps || ++reused_ % 3 != 0) bin.pop_back();
    } else {
      if (flaw_ == Flaw::kLosesOnFailure) ++live_;
      address = source_.acquire(bytes);
      if (!address) {
        trim(0);
        address = source_.acquire(bytes);
      }
      if (!address) throw OutOfMemory({.requested_bytes = request.bytes});
      if (flaw_ == Flaw::kLosesOnFailure) --live_;
      all_[address] = bytes;
    }
    char* data = static_cast<char*>(address) + (flaw_ == Flaw::kMisaligns ? 32 : 0);
    return {.data = data, .bytes = bytes - (flaw_ == Flaw::kMisaligns ? 32 : 0), .cookie = address, .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const std::size_t bytes = all_.at(block.cookie);
    const bool elsewhere = uses_.erase(block.cookie) > 0 || last_use != block.request.stream;
    if (elsewhere && flaw_ != Flaw::kIgnoresOtherUses) {
      try {
        source_.synchronize();
      } catch (const Error&) {
        return;  // it stays out until the end
      }
    }
    bins_[{bytes, block.request.stream.id}].push_back(block.cookie);
  }

  void record_use(const Block& block, StreamRef stream) override {
    if (stream != block.request.stream) uses_[block.cookie] = true;
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (keep_bytes != 0) return 0;
    source_.synchronize();
    std::size_t given = 0;
    for (auto& [key, bin] : bins_) {
      for (void* address : bin) {
        given += all_.at(address);
        if (flaw_ == Flaw::kKeepsOnTrim) continue;
        source_.release(address, all_.at(address) + (flaw_ == Flaw::kRemembersWrongSize ? 512 : 0));
        all_.erase(address);
      }
      if (flaw_ != Flaw::kKeepsOnTrim) bin.clear();
    }
    return given;
  }

  void check_invariants() const override {
    if (live_ != 0) throw Error("bins: a block that was never taken is counted");
  }

 private:
  MemorySource& source_;
  const Flaw flaw_;
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
  return conformance::run(info, nullptr, {.histories = 10, .only = only});
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

}  // namespace
}  // namespace tenon
