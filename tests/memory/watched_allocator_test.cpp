// A watched allocator passes every call on, and the words for a call say what it was about.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/watch/watched_allocator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::ElementsAre;

/// Writes down what it is asked.
class Scribe final : public Allocator {
 public:
  explicit Scribe(std::vector<std::string>& calls) : calls_(calls) {}
  Block allocate(const Request& request) override {
    note("allocate", request.bytes);
    return {.data = &place_, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    note("deallocate", block.bytes, last_use.id);
  }
  void record_use(const Block& block, StreamRef stream) override { note("record_use", block.bytes, stream.id); }
  std::size_t trim(std::size_t keep_bytes) override {
    note("trim", keep_bytes);
    return 3;
  }
  void report(PolicyStats& stats) const override {
    note("report");
    stats.largest_free_bytes = 11;
  }
  void reset_stats(bool peaks, bool accumulated) override { note("reset_stats", peaks, accumulated); }
  void check_invariants() const override { note("check_invariants"); }

 private:
  template <class... Numbers>
  void note(std::string what, Numbers... numbers) const {
    ((what += ' ' + std::to_string(numbers)), ...);
    calls_.push_back(what);
  }
  std::vector<std::string>& calls_;
  char place_ = 0;
};

struct Quiet final : CallWatcher {
  void* begins(const CallFacts& facts) override {
    texts.push_back(text_of(facts));
    return nullptr;
  }
  void ended(void*, std::uintptr_t) noexcept override {}
  void foreign_exception(const CallFacts&, const std::string&) override {}
  std::vector<std::string> texts;
};

TEST(WatchedAllocator, PassesEveryCallOnWithItsArgumentsAndItsAnswer) {
  std::vector<std::string> calls;
  Quiet watcher;
  AllocatorInfo info{.name = "scribe", .create = [&](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                       return std::make_unique<Scribe>(calls);
                     }};
  AddressOnlySource source;
  const AllocatorInfo seen = watched(info, watcher);
  const Options options(seen.options);
  const auto allocator = seen.create({.source = source, .options = options});
  const Block block = allocator->allocate({.bytes = 7});
  allocator->record_use(block, {2});
  allocator->deallocate(block, {5});
  EXPECT_EQ(allocator->trim(9), 3u);
  PolicyStats stats;
  allocator->report(stats);
  EXPECT_EQ(stats.largest_free_bytes, 11u);
  allocator->reset_stats(true, false);
  allocator->reset_stats(false, true);
  allocator->check_invariants();
  EXPECT_THAT(calls, ElementsAre("allocate 7", "record_use 7 2", "deallocate 7 5", "trim 9", "report",
                                 "reset_stats 1 0", "reset_stats 0 1", "check_invariants"));
}

TEST(CallText, SaysWhatTheCallWasAboutAndOnWhichStream) {
  EXPECT_EQ(text_of({.call = Call::kAllocate, .alignment = 64, .bytes = 4096, .stream = 3}),
            "allocate(4096 bytes, alignment 64, stream 3)");
  EXPECT_EQ(text_of({.call = Call::kDeallocate, .stream = 3, .address = 0x40}),
            "deallocate(0x40, last used on stream 3)");
  EXPECT_EQ(text_of({.call = Call::kRecordUse, .stream = 3, .address = 0x40}), "record_use(0x40, stream 3)");
  EXPECT_EQ(text_of({.call = Call::kTrim, .bytes = 5}), "trim(5)");
  EXPECT_EQ(text_of({.call = Call::kReport}), "report()");
  EXPECT_EQ(text_of({.call = Call::kCreate}), "the constructor");
}

}  // namespace
}  // namespace tenon
