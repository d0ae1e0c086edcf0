// Pictures of a running device: the snapshot reads back as what happened, the other writers agree with it.
#include "replay/support.h"

#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/folded_format.h>
#include <tenon/replay/formats/pytorch/chrome_writer.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>
#include <memory/test_policy.h>

#include <fstream>
#include <iterator>

namespace tenon::replay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Image : public ::testing::Test {
 protected:
  void SetUp() override {
    history_->start({.stacks = StackContext::kAlloc});
    stack_ = tenon::test::make_stack(source_);
    stack_->attach_history(history_);
    kept_ = stack_->allocate({.bytes = 1000});
    const Block gone = stack_->allocate({.bytes = 5000});
    stack_->deallocate(gone);
    again_ = stack_->allocate({.bytes = 4800});  // in the cached segment
  }
  void TearDown() override {
    stack_->deallocate(kept_);
    stack_->deallocate(again_);
  }
  SnapshotImage picture() const {
    SnapshotImage image = image_of_stack(*stack_, *history_);
    image.marks = {{image.events.at(3).time_us, "step \"2\""}};
    return image;
  }
  AddressOnlySource source_{{.capacity_bytes = 1 << 20}};
  std::shared_ptr<History> history_ = std::make_shared<History>();
  std::shared_ptr<AllocatorStack> stack_;
  Block kept_, again_;
};

TEST_F(Image, TheSnapshotOfARunReadsBackAsWhatHappened) {
  const std::string path = scratch("run.pickle");
  write_snapshot(picture(), path);
  const std::vector<Trace> traces = read_traces(path, {.with_stacks = true});
  ASSERT_EQ(traces.size(), 1u);
  const Trace& trace = traces.front();
  EXPECT_EQ(trace.format, "snapshot");
  EXPECT_EQ(trace.facts.allocations, 3u);
  EXPECT_EQ(trace.facts.frees, 1u);
  EXPECT_EQ(trace.facts.seeded_blocks, 0u) << "the history is whole";
  EXPECT_EQ(trace.facts.peak_requested_bytes, 6000u);
  EXPECT_EQ(trace.facts.end_live_bytes, 5800u);
  ASSERT_TRUE(trace.recorded);
  EXPECT_EQ(trace.recorded->reserved_bytes, 1024u + 5120u);
  EXPECT_EQ(trace.marks, std::vector<std::string>{"step \"2\""});
  EXPECT_GT(trace.stacks.frames.size(), 0u);
  std::filesystem::remove(path);
}

TEST_F(Image, AnUnservedRequestIsInTheSnapshotWithWhatTheDeviceHadLeft) {
  EXPECT_THROW(stack_->allocate({.bytes = 2 << 20}), OutOfMemory);
  const std::string path = scratch("oom.pickle");
  write_snapshot(picture(), path);
  const Trace trace = read_traces(path).front();
  ASSERT_EQ(trace.ooms.size(), 1u);
  const RecordedOom& oom = trace.ooms.front();
  EXPECT_EQ(oom.bytes, 2u << 20);
  EXPECT_EQ(oom.reserved_bytes + oom.device_free_bytes, 1u << 20) << "together the device";
  std::filesystem::remove(path);
}

/// A policy without `walk` shows none of its segments, whatever it did to the device.
TEST_F(Image, ASnapshotWithoutSegmentsIsToldApartFromOneThatContradictsItself) {
  const Block small = stack_->allocate({.bytes = 100});
  stack_->deallocate(small);
  ASSERT_NE(stack_->trim(0), 0U) << "the recording has a segment that went back";
  SnapshotImage image = picture();
  std::uint64_t reserved = 0;
  for (const Segment& segment : image.segments) reserved += segment.bytes;
  image.segments.clear();
  image.allocator = "mine";
  const std::string path = scratch("no_walk.pickle");
  for (const std::uint64_t stated : {reserved, std::uint64_t{0}}) {  // 0: as an earlier Tenon wrote it
    image.unlisted_bytes = stated;
    write_snapshot(image, path);
    const Trace trace = read_traces(path).front();
    EXPECT_EQ(trace.facts.allocations, 4U);
    EXPECT_EQ(trace.recorded->reserved_bytes, reserved);
    EXPECT_EQ(trace.recorded->peak_reserved_bytes, reserved + 512);
    EXPECT_TRUE(trace.recorded->is_whole);
    EXPECT_THAT(judge(trace).refusal, Not(HasSubstr("contradicts itself")));
    EXPECT_THAT(trace.notes, Contains(HasSubstr("the policy 'mine' does not show its segments (Allocator::walk)")));
  }
  std::filesystem::remove(path);
}

TEST_F(Image, ThePictureOfAPolicyThatShowsNoSegmentsSaysWhatItHadReserved) {
  struct Hiding final : ForwardingAllocator {
    using ForwardingAllocator::ForwardingAllocator;
    void walk(SegmentVisitor&) const override {}
  };
  AllocatorInfo policy = tenon::test::simple_policy();
  policy.create = [make = policy.create](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    return std::make_unique<Hiding>(make(context));
  };
  const auto hidden = AllocatorStack::make(source_, {.policy = policy});
  hidden->attach_history(history_);
  const Block block = hidden->allocate({.bytes = 1000});
  EXPECT_EQ(image_of_stack(*hidden, *history_).unlisted_bytes, 1024U);
  hidden->deallocate(block);
}

TEST_F(Image, ChromeCountersEndWhereTheDeviceStands) {
  const std::string path = scratch("run.json");
  write_chrome_counters(picture(), path);
  const std::string json = content(path);
  EXPECT_THAT(json, HasSubstr(R"("args":{"live bytes":5800,"reserved bytes":6144}})"));
  EXPECT_THAT(json, HasSubstr(R"("name":"step \"2\"")"));
  EXPECT_EQ(json.find("},\n]"), std::string::npos);
  std::filesystem::remove(path);
}

TEST_F(Image, FoldedStacksAddUpToThePeak) {
  const std::string path = scratch("run.folded");
  write_folded(picture(), path);
  std::ifstream lines(path);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(lines, line);) sum += std::stoull(line.substr(line.rfind(' ') + 1));
  EXPECT_EQ(sum, 6000u);
  std::filesystem::remove(path);
}

TEST(ImageOfReplay, ReadsBackAsTheTraceItCameFrom) {
  const Trace trace = read_one("m begin\na 0 100 0\na 1 200 0\nm step 2\nf 0\na 2 300 0\nf 1\nf 2\n");
  const std::string path = scratch("replay.pickle");
  write_snapshot(image_of_replay(trace, keeping_policy(), {}), path);
  const Trace back = read_traces(path).front();
  EXPECT_EQ(difference(trace, back).what, "");
  EXPECT_EQ(back.marks, (std::vector<std::string>{"begin", "step 2"}));
  std::filesystem::remove(path);
}

// An allocator that waits for the device gets blocks back whose free was pending; others may lie there afterwards.
TEST(ImageOfReplay, AFreeThatTheAllocatorWaitedForCompletesThere) {
  load_all_plugins();
  const Trace trace = read_one("a 8 742 0\nm tenon:deferred 8\nf 8\ne\na 15 241 0\nm tenon:completed 8\nf 15\n");
  const std::string path = scratch("waited.pickle");
  write_snapshot(image_of_replay(trace, policy_of_conf(""), std::nullopt, Failures::kKept), path);
  const Trace back = read_traces(path).front();
  EXPECT_EQ(back.facts.allocations, 2u);
  EXPECT_EQ(back.facts.peak_requested_bytes, trace.facts.peak_requested_bytes);
  std::filesystem::remove(path);
}

TEST(ImageOfReplay, RangesThatAreUnmappedTogetherAreOneEventOnlyWhereTheyTouch) {
  load_all_plugins();
  const Trace trace = read_one("a 0 30000000 0\na 1 30000000 1\nf 0\nf 1\ne\n");
  const SnapshotImage image = image_of_replay(trace, policy_of_conf("expandable_segments:True"), {});
  std::map<std::uint64_t, std::size_t> mapped, unmapped;
  for (const auto& event : image.events) {
    if (event.action == HistoryAction::kSegmentMap) mapped[event.address] += event.bytes;
    if (event.action == HistoryAction::kSegmentUnmap) unmapped[event.address] += event.bytes;
  }
  EXPECT_EQ(mapped.size(), 2u) << "a segment of each stream, mapped page by page";
  EXPECT_EQ(unmapped, mapped);
}

}  // namespace
}  // namespace tenon::replay
