// What a policy is disqualified for, word for word, and the figures of the pass that finds it.
#include "replay/support.h"

#include <tenon/core/units.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Does `serves` for each request, in place of a piece of the device.
StackConfig policy_that_serves(std::function<Block(MemorySource&, const Request&)> serves) {
  return policy_of("odd", [serves = std::move(serves)](const AllocatorContext& context) {
    class Odd final : public Allocator {
     public:
      Odd(MemorySource& source, std::function<Block(MemorySource&, const Request&)> serves)
          : source_(source), serves_(std::move(serves)) {}
      Block allocate(const Request& request) override { return serves_(source_, request); }
      void deallocate(const Block&, StreamRef) noexcept override {}

     private:
      MemorySource& source_;
      std::function<Block(MemorySource&, const Request&)> serves_;
    };
    return std::make_unique<Odd>(context.source, serves);
  });
}

constexpr char kTwo[] = "a 0 1000 0\na 1 512 0\nf 0\nf 1\n";
constexpr JobOptions kChecked{.timed_passes = 0, .time_each_call = false};
constexpr JobOptions kUnchecked{.timed_passes = 0, .time_each_call = false, .check_placement = false};

ReplayRow row_under(const StackConfig& policy, const JobOptions& options = kChecked, const char* history = kTwo) {
  return run_job(read_one(history), policy, options);
}

TEST(Disqualified, IsABlockThatIsTooSmall) {
  const StackConfig small = policy_that_serves([](MemorySource& source, const Request& request) {
    const std::size_t bytes = request.bytes == 512 ? 511 : request.bytes;
    return Block{.data = source.acquire(request.bytes), .bytes = bytes, .request = request};
  });
  const ReplayRow row = row_under(small);
  EXPECT_EQ(row.failure, "handed out 511 bytes for a request of 512");
  EXPECT_EQ(row.failed_event, 1U);
}

TEST(Disqualified, IsABlockThatForgetsItsRequest) {
  const StackConfig forgetful = policy_that_serves([](MemorySource& source, const Request& request) {
    Block block{.data = source.acquire(request.bytes), .bytes = request.bytes, .request = request};
    if (request.bytes == 512) block.request.bytes = 513;
    return block;
  });
  EXPECT_THAT(row_under(forgetful).failure, StartsWith("lost a request: "));
  EXPECT_EQ(row_under(forgetful).failed_event, 1U);
  EXPECT_EQ(row_under(forgetful, kUnchecked).failure, "");
}

TEST(Disqualified, IsAnExceptionThatIsNotTenons) {
  const StackConfig throwing =
      policy_that_serves([](MemorySource&, const Request&) -> Block { throw std::runtime_error("out of ideas"); });
  EXPECT_EQ(row_under(throwing).failure,
            "an allocator may throw only tenon::OutOfMemory and tenon::Error, and allocate(1000 bytes, alignment 64, "
            "stream 0) threw std::runtime_error (\"out of ideas\")");
  const StackConfig erring =
      policy_that_serves([](MemorySource&, const Request&) -> Block { throw Error("out of ideas"); });
  EXPECT_EQ(row_under(erring).failure, "out of ideas");
  EXPECT_EQ(row_under(erring).failed_event, 0U);
}

TEST(Disqualified, AreBlocksOfMoreThanWasTaken) {
  // Memory that is destroyed while it is mapped is nobody's, though it is still there.
  const StackConfig hollow = policy_that_serves([](MemorySource& source, const Request& request) {
    const std::size_t page = source.traits().page_bytes;
    void* const range = source.reserve(page);
    const Physical pages = source.create(page);
    source.map(range, page, pages, 0);
    source.destroy(pages, page);
    return Block{.data = range, .bytes = request.bytes, .request = request};
  });
  EXPECT_EQ(row_under(hollow).failure,
            "handed out blocks of 1000 bytes in all with only 0 taken from the device: Block::bytes is wrong");
}

TEST(Disqualified, IsWhatIsKeptWhenThePolicyIsDestroyed) {
  const StackConfig keeping = policy_that_serves([](MemorySource& source, const Request& request) {
    return Block{.data = source.acquire(request.bytes), .bytes = request.bytes, .request = request};
  });
  const ReplayRow row = row_under(keeping);
  EXPECT_THAT(row.failure, StartsWith("kept "));
  EXPECT_THAT(row.failure, EndsWith(" bytes of the device when it was destroyed"));
  EXPECT_EQ(row.failed_event, 4U);
  EXPECT_EQ(row.peak_reserved_bytes, 1512U) << "its figures stay";
  EXPECT_EQ(row_under(keeping, kUnchecked).failure, "");
}

/// Gives the memory of a freed block to the next request of any stream, once it has waited for those that it knows of.
StackConfig handing_on(bool hears_of_uses, bool hears_of_last_uses) {
  return policy_of("handing on", [=](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class HandingOn final : public PlainPolicy {
     public:
      HandingOn(MemorySource& source, bool uses, bool last_uses)
          : PlainPolicy(source), uses_(uses), last_uses_(last_uses) {}
      Block allocate(const Request& request) override {
        if (kept_ == nullptr) return PlainPolicy::allocate(request);
        return {.data = std::exchange(kept_, nullptr), .bytes = request.bytes, .request = request};
      }
      void deallocate(const Block& block, StreamRef last_use) noexcept override {
        kept_ = block.data;
        if (last_uses_) source_.wait(source_.mark(last_use));
        if (uses_ && is_used_) source_.wait(source_.mark(used_by_));
      }
      void record_use(const Block&, StreamRef stream) override { used_by_ = stream, is_used_ = true; }

     private:
      bool uses_, last_uses_, is_used_ = false;
      StreamRef used_by_;
      void* kept_ = nullptr;
    };
    return std::make_unique<HandingOn>(context.source, hears_of_uses, hears_of_last_uses);
  });
}

TEST(Disqualified, IsMemoryThatAnotherStreamMayStillUseInWhicheverCallThePolicyWasTold) {
  constexpr char history[] = "a 0 512 0\nu 0 3\nf 0\na 1 512 0\nf 1\n";
  const auto said = [&](bool uses, bool last_uses, const JobOptions& options = kChecked) {
    return row_under(handing_on(uses, last_uses), options, history);
  };
  EXPECT_EQ(said(true, true).failure, "");
  EXPECT_THAT(said(false, true).failure, HasSubstr("for stream 0, which stream 3 may still use"));
  EXPECT_THAT(said(false, true).failure, ::testing::Not(HasSubstr("last use")));
  EXPECT_THAT(said(true, false).failure, EndsWith("nor waited for it (the last use told at the free)"));
  EXPECT_EQ(said(true, false).failed_event, 3U);
  EXPECT_EQ(said(false, true, kUnchecked).failure, "");
  JobOptions with_actions = kChecked;
  with_actions.keep_actions = true;
  EXPECT_EQ(said(false, true, with_actions).failure, "") << "device calls are listed instead";
}

TEST(StoppedReplays, EndWithTheFirstRequestThatDoesNotFit) {
  JobOptions options = kChecked;
  options.capacity_bytes = 1024;
  const char* const history = "a 0 1000 0\na 1 512 0\na 2 600 0\nf 0\nf 1\nf 2\n";
  EXPECT_EQ(row_under(plain_policy(), options, history).ooms, 2U);
  options.stop_at_first_oom = true;
  const ReplayRow row = row_under(plain_policy(), options, history);
  EXPECT_EQ(row.ooms, 1U);
  EXPECT_EQ(row.first_oom_event, 1U);
  EXPECT_EQ(row.first_oom_bytes, 512U);
  EXPECT_EQ(row.failure, "");
}

TEST(ObservedFigures, OfWasteAreThoseOfTheFirstTimeAtThePeak) {
  // Blocks of 100 bytes more than was asked for, in pieces of 300 more.
  const StackConfig wasteful = policy_of("wasteful", [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Wasteful final : public PlainPolicy {
     public:
      using PlainPolicy::PlainPolicy;
      Block allocate(const Request& request) override {
        void* const data = source_.acquire(request.bytes + 300);
        return {.data = data, .bytes = request.bytes + 100, .request = request};
      }
      void deallocate(const Block& block, StreamRef) noexcept override {
        source_.release(block.data, block.request.bytes + 300);
      }
    };
    return std::make_unique<Wasteful>(context.source);
  });
  const ReplayRow row = row_under(wasteful, kChecked,
                                  "a 0 1000 0\na 1 500 0\nf 0\na 2 200 0\nf 1\nf 2\na 3 1500 0\na 4 300 0\nf 3\nf 4\n");
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.peak_requested_bytes, 1800U);
  EXPECT_EQ(row.peak_reserved_bytes, 2400U);
  EXPECT_EQ(row.peak_reserved_event, 7U);
  EXPECT_EQ(row.peak_allocated_bytes, 2000U);
  EXPECT_DOUBLE_EQ(row.internal_fragmentation, 1 - 1800.0 / 2000);
  EXPECT_DOUBLE_EQ(row.external_fragmentation, 1 - 2000.0 / 2400);
  EXPECT_DOUBLE_EQ(row.excess, 2400.0 / 1800 - 1);
  EXPECT_EQ(row.end_reserved_bytes, 0U);
}

TEST(ObservedFigures, OfWhatIsActiveCountBlocksWhoseFreeWaits) {
  const ReplayRow row = row_under(plain_policy(), kChecked,
                                  "a 0 1000 0\nm tenon:deferred 0\nf 0\na 1 600 0\nm tenon:completed 0\na 2 700 0\n"
                                  "f 1\nf 2\n");
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.peak_active_bytes, 1600U);
  EXPECT_EQ(row.peak_allocated_bytes, 1300U);
}

TEST(ObservedCurves, HaveAtMostFifteenHundredStretchesEachWithItsHighestFigures) {
  for (const int pairs : {1, 749, 750, 1499, 1500, 2300}) {
    std::string text;
    std::vector<std::uint64_t> live = {};
    for (int i = 0; i < pairs; ++i) {
      const int bytes = 1 + i * 37 % 1001;
      text += fmt::format("a {0} {1} 0\nf {0}\n", i, bytes);
      live.push_back(static_cast<std::uint64_t>(bytes));
      live.push_back(0);
    }
    JobOptions options = kChecked;
    options.keep_curve = true;
    const ReplayRow row = row_under(plain_policy(), options, text.c_str());
    const std::size_t stride = std::max<std::size_t>(1, live.size() / 1500);
    ASSERT_EQ(row.curve.size(), (live.size() + stride - 1) / stride) << pairs;
    for (std::size_t i = 0; i < row.curve.size(); ++i) {
      std::uint64_t most = 0;
      for (std::size_t at = i * stride; at < std::min(live.size(), (i + 1) * stride); ++at)
        most = std::max(most, live[at]);
      ASSERT_EQ(row.curve[i].event, i * stride);
      ASSERT_EQ(row.curve[i].requested_bytes, most) << pairs << ", " << i;
      ASSERT_EQ(row.curve[i].reserved_bytes, most) << pairs << ", " << i;
    }
  }
}

TEST(IdealFigures, AreOfWhatFitsBesideWhatLives) {
  const Trace trace = read_one("a 0 600 0\na 1 500 0\na 2 400 0\nf 1\nf 0\na 3 601 0\na 4 600 0\nf 2\n");
  const ReplayRow row = ideal_row(trace, 1000);
  EXPECT_EQ(row.ooms, 2U) << "500 beside 600, and 601 beside 400";
  EXPECT_EQ(row.first_oom_event, 1U);
  EXPECT_EQ(row.first_oom_bytes, 500U);
  EXPECT_EQ(row.label, kIdealAllocator);
  EXPECT_EQ(ideal_row(trace, 1601).ooms, 0U);
  EXPECT_EQ(ideal_row(trace, {}).ooms, 0U);
  EXPECT_EQ(ideal_row(trace, {}).peak_reserved_bytes, trace.facts.peak_requested_bytes);
  EXPECT_EQ(ideal_row(trace, {}).peak_reserved_event, trace.facts.peak_event);
}

}  // namespace
}  // namespace tenon::replay
