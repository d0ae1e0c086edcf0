// What lives, marks, and what grew between two of them.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace program {

int line = 0;
tenon::Tensor make_table(std::int64_t rows) {
  line = __LINE__ + 1;
  return tenon::ones({rows, 256});
}

}  // namespace program

namespace tenon::test {
namespace {

using memory::LiveRecording;
using memory::LiveTensor;
using memory::MarkDiff;

std::string site() { return "program::make_table (live_memory_test.cpp:" + std::to_string(program::line) + ")"; }

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

TEST(LiveMemoryDeathTest, WhatStillLivesAtExitIsToldOnRequestByItsSite) {
  const auto ends = [] {
    memory::report_live_at_exit();
    [[maybe_unused]] static const auto* kept = new Tensor(program::make_table(4));
    std::exit(0);
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0),
              "tenon: at exit 4.00 KiB still live on cpu:0 in 1 blocks\n"
              ".*4.00 KiB.*activation  program::make_table .live_memory_test.cpp:");
}

}  // namespace
}  // namespace tenon::test
