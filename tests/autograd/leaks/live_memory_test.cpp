// What lives, marks, and what grew between two of them.
#include <tenon/tenon.h>

#include <tenon/device/device_state.h>
#include <tenon/tensor/live_tensors.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace program {

int line = 0;
tenon::Tensor make_table(std::int64_t rows) {
  line = __LINE__ + 1;
  return tenon::ones({rows, 256});
}

// The bits of `way` say by which of two lines it calls itself.
std::uint32_t line_of_one = 0, line_of_zero = 0;
[[gnu::noinline]] tenon::Tensor descend(int depth, std::uint64_t way) {
  if (depth == 0) return tenon::empty({4});
  tenon::Tensor made;
  if ((way >> (depth % 8) & 1) != 0) {
    line_of_one = __LINE__ + 1;
    made = descend(depth - 1, way);
    asm volatile("# by one line" : : : "memory");
  } else {
    line_of_zero = __LINE__ + 1;
    made = descend(depth - 1, way);
    asm volatile("# by another" : : : "memory");
  }
  return made;
}

}  // namespace program

namespace tenon::test {
namespace {

using memory::LiveRecording;
using memory::LiveTensor;
using memory::MarkDiff;

std::string site() { return "program::make_table (live_memory_test.cpp:" + std::to_string(program::line) + ")"; }

TEST(LiveMemory, ARecordingEndsWithItsDeviceAndLeavesThatWhichIsOpenedAgainAlone) {
  auto older = std::make_unique<LiveRecording>();
  close_devices();
  EXPECT_THROW(memory::mark(), Error);
  const LiveRecording newer;
  older.reset();
  EXPECT_TRUE(memory::mark().blocks.empty());
  const Tensor table = program::make_table(4);
  EXPECT_EQ(memory::mark().blocks.size(), 1u);
}

TEST(LiveMemory, WhatGrewBetweenTwoMarksIsListedBySiteLabelPurposeAndSize) {
  const LiveRecording recording;
  const Tensor early = program::make_table(4);
  const memory::Mark before = memory::mark("before");
  std::vector<Tensor> kept;
  {
    const LabelGuard label("tables");
    const PurposeGuard purpose(Purpose::kData);
    for (int i = 0; i < 3; ++i) kept.push_back(program::make_table(8));
  }
  program::make_table(2);  // comes and goes
  const MarkDiff diff = memory::diff(before, memory::mark("after"));
  ASSERT_EQ(diff.rows.size(), 1U) << diff.text();
  EXPECT_EQ(diff.bytes, 3 * 8 * 1024);
  EXPECT_EQ(diff.rows[0].blocks, 3);
  EXPECT_EQ(diff.rows[0].block_bytes, 8 * 1024U);
  EXPECT_EQ(diff.rows[0].label, "tables");
  EXPECT_EQ(diff.rows[0].purpose, Purpose::kData);
  EXPECT_TRUE(diff.rows[0].site.starts_with(site())) << diff.rows[0].site;
  EXPECT_TRUE(diff.text().starts_with("+24.0 KiB from 'before' to 'after'\n")) << diff.text();
}

TEST(LiveMemory, WhatEndedBetweenTwoMarksIsNegative) {
  const LiveRecording recording;
  Tensor table = program::make_table(4);
  const memory::Mark before = memory::mark();
  table.reset();
  const MarkDiff diff = memory::diff(before, memory::mark());
  ASSERT_EQ(diff.rows.size(), 1U);
  EXPECT_EQ(diff.bytes, -4 * 1024);
  EXPECT_EQ(diff.rows[0].blocks, -1);
}

TEST(LiveMemory, AMarkWithoutARecordingIsAnErrorThatSaysWhatToDo) {
  try {
    memory::mark();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("LiveRecording"), std::string::npos) << error.what();
  }
}

TEST(LiveMemory, ARecordingLeavesAHistoryThatWasThereAsItWas) {
  record_memory_history({.max_entries = 100});
  {
    const LiveRecording recording;
    program::make_table(1);
  }
  const MemorySnapshot snapshot = memory_snapshot();
  EXPECT_GE(snapshot.events.size(), 3U);
  stop_memory_history();
}

TEST(LiveMemory, LiveTensorsAreListedWithWhatMadeThem) {
  const LiveRecording recording;
  const Tensor table = program::make_table(16).requires_grad_();
  const Tensor row = table.select(0, 3);
  const Tensor doubled = row * 2;
  const std::vector<LiveTensor> tensors = memory::live_tensors();
  ASSERT_EQ(tensors.size(), 3U) << memory::live_tensors_text();
  EXPECT_EQ(tensors[0].sizes, (std::vector<std::int64_t>{16, 256}));
  EXPECT_TRUE(tensors[0].made_at.starts_with(site())) << tensors[0].made_at;
  EXPECT_TRUE(tensors[0].requires_grad);
  EXPECT_EQ(tensors[1].grad_fn, "SelectBackward0");
  EXPECT_EQ(tensors[1].storage_bytes, 16 * 1024U);
  EXPECT_EQ(tensors[1].bytes, 1024U);
  EXPECT_EQ(tensors[2].grad_fn, "MulBackward0");
  EXPECT_TRUE(memory::live_tensors_text().starts_with("3 live tensors keep 17.0 KiB in 2 storages\n"))
      << memory::live_tensors_text();
}

TEST(LiveMemory, AStackThatIsTheOneBeforeInPartIsKnownFrameByFrame) {
  const LiveRecording recording;
  std::vector<Tensor> kept;
  std::vector<std::pair<int, std::uint64_t>> calls;
  std::uint64_t seed = 1;
  for (int i = 0; i < 300; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    calls.emplace_back(1 + static_cast<int>(seed >> 40) % 60, i % 3 == 0 ? 0x55 : seed >> 56);  // up to 48 are kept
    kept.push_back(program::descend(calls.back().first, calls.back().second));
  }
  const std::vector<ListedTensor> tensors = listed_tensors();
  ASSERT_EQ(tensors.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::vector<std::uint32_t> lines;
    for (const StackFrame& frame : listed_frames(tensors[i].made_at))
      if (frame.name.starts_with("program::descend")) lines.push_back(frame.line);
    ASSERT_GE(lines.size(), std::min<std::size_t>(30, static_cast<std::size_t>(calls[i].first))) << i;
    for (std::size_t depth = 1; depth < lines.size(); ++depth)
      ASSERT_EQ(lines[depth], (calls[i].second >> (depth % 8) & 1) != 0 ? program::line_of_one : program::line_of_zero)
          << "call " << i << ", frame " << depth;
  }
}

TEST(LiveMemoryDeathTest, WhatStillLivesAtExitIsToldOnRequestByItsSite) {
  const auto ends = [] {
    memory::report_live_at_exit();
    [[maybe_unused]] static const auto* kept = new Tensor(program::make_table(4));
    std::exit(0);
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0),
              "tenon: at exit 4.00 KiB still live on cpu:0 in 1 block\n"
              ".*4.00 KiB.*activation  program::make_table .live_memory_test.cpp:");
}

}  // namespace
}  // namespace tenon::test
