// What tables of what lives say, word for word, how long they are, and what a recording leaves behind.
#include <tenon/tenon.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/history/history.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "support/refusal.h"

// Outside of tenon's namespace, as a user's program is.
namespace program {

tenon::Tensor table_of(std::int64_t elements) { return tenon::ones({elements}); }
tenon::Tensor list_of(std::int64_t elements) { return tenon::zeros({elements}); }

}  // namespace program

namespace tenon::test {
namespace {

using memory::LiveRecording;
using memory::Mark;
using memory::MarkDiff;

/// The text; places of the program have their first function alone.
std::string words_of(const std::string& text) {
  return std::regex_replace(text, std::regex("(program::[a-z_]*|  [^ ][^\\n]*) \\([a-z_]*\\.cpp:[^\\n]*"), "$1");
}

TEST(LiveTensors, AreListedOnWhenARecordingOfBlocksAloneEnds) {
  const LiveRecording recording;
  { const LiveRecording of_blocks(kCPU, /*lists_tensors=*/false); }
  const Tensor kept = program::table_of(77);
  const auto listed = memory::live_tensors();
  EXPECT_EQ(std::ranges::count(listed, std::vector<std::int64_t>{77}, &memory::LiveTensor::sizes), 1);
}

TEST(LiveTensors, AreNotListedByARecordingOfBlocksAlone) {
  const LiveRecording of_blocks(kCPU, /*lists_tensors=*/false);
  const Tensor kept = program::table_of(77);
  EXPECT_TRUE(memory::live_tensors().empty());
}

TEST(LiveTables, OfADifferenceNameEachSiteSizePurposeAndLabelWithWhatGrewMostFirst) {
  const LiveRecording recording;
  std::vector<Tensor> kept;
  Tensor gone = program::list_of(512);
  const Mark before = memory::mark("one");
  for (int i = 0; i < 3; ++i) kept.push_back(program::table_of(256));
  kept.push_back(program::table_of(1024));
  {
    const LabelGuard label("words");
    const PurposeGuard purpose(Purpose::kData);
    kept.push_back(program::list_of(128));
  }
  gone.reset();
  const Mark after = memory::mark("two");
  const MarkDiff diff = memory::diff(before, after);
  EXPECT_EQ(diff.from, "one");
  EXPECT_EQ(diff.to, "two");
  EXPECT_EQ(diff.bytes, 3072 + 4096 + 512 - 2048);
  ASSERT_EQ(diff.rows.size(), 4U);
  const std::string head = "+5.50 KiB from 'one' to 'two'\n";
  const std::vector<std::string> rows = {"  +4.00 KiB     +1 x 4.00 KiB    activation  program::table_of\n",
                                         "  +3.00 KiB     +3 x 1.00 KiB    activation  program::table_of\n",
                                         "     +512 B     +1 x 512 B       data (words)  program::list_of\n",
                                         "  -2.00 KiB     -1 x 2.00 KiB    activation  program::list_of\n"};
  EXPECT_EQ(words_of(diff.text()), head + "  " + rows[0] + "  " + rows[1] + "  " + rows[2] + "  " + rows[3]);
  EXPECT_EQ(words_of(diff.text(4)), words_of(diff.text()));
  EXPECT_EQ(words_of(diff.text(3)), head + "  " + rows[0] + "  " + rows[1] + "  " + rows[2] + "  … and 1 more\n");
  EXPECT_EQ(diff.text(0), head + "  … and 4 more\n");
  const MarkDiff back = memory::diff(after, before);
  EXPECT_EQ(back.bytes, -diff.bytes);
  EXPECT_EQ(back.rows.front().bytes, 2048);
  EXPECT_EQ(back.rows.back().blocks, -1);
  EXPECT_EQ(memory::diff(after, after).text(), "+0 B from 'two' to 'two'\n");
  EXPECT_EQ(memory::diff(memory::mark(), memory::mark()).text(), "+0 B between the marks\n");
  EXPECT_EQ(memory::diff(memory::mark("a"), memory::mark()).text(), "+0 B from 'a' to ''\n");
  EXPECT_EQ(memory::diff(memory::mark(), memory::mark("b")).text(), "+0 B from '' to 'b'\n");
}

TEST(LiveTables, WhatCameAndWentAtOnePlaceIsNoRow) {
  const LiveRecording recording;
  Tensor first = program::table_of(64);
  const Mark before = memory::mark();
  first = program::table_of(64);
  EXPECT_TRUE(memory::diff(before, memory::mark()).rows.empty()) << "one less and one more";
}

TEST(LiveTables, OfTensorsNameTheirSizesUseAndHistoryTheLargestFirst) {
  const LiveRecording recording;
  Tensor small, view, result;
  {
    const LabelGuard label("words");
    small = program::list_of(32);
  }
  const Tensor large = program::table_of(1024).requires_grad_();
  view = large.narrow(0, 8, 256);
  result = large * 2;
  const std::string head = "4 live tensors keep 8.12 KiB in 3 storages\n";
  const std::string text = words_of(memory::live_tensors_text());
  EXPECT_EQ(text.substr(0, head.size()), head);
  EXPECT_NE(text.find("    4.00 KiB  [1024] float32, activation  program::table_of\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    4.00 KiB  [256] float32, activation, uses 1.00 KiB of it, of SliceBackward0  "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    4.00 KiB  [1024] float32, activation, of MulBackward0  "), std::string::npos) << text;
  EXPECT_NE(text.find("       128 B  [32] float32, activation (words)  program::list_of\n"), std::string::npos) << text;
  EXPECT_TRUE(words_of(memory::live_tensors_text(3)).ends_with("  … and 1 more\n"));
  EXPECT_EQ(memory::live_tensors_text(0), head + "  … and 4 more\n");
  const auto tensors = memory::live_tensors();
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors.back().label, "words");
  EXPECT_FALSE(tensors.back().requires_grad);
  EXPECT_EQ(tensors.back().grad_fn, "");
  EXPECT_TRUE(tensors.back().device.is_cpu());
  EXPECT_EQ(tensors.back().references, 1U);
  std::size_t leaves = 0;
  for (const auto& one : tensors) leaves += one.requires_grad && one.grad_fn.empty() ? 1 : 0;
  EXPECT_EQ(leaves, 1U);
}

TEST(LiveTables, OfBlocksBeginWithTheirSumAndNumber) {
  const LiveRecording recording;
  const Tensor first = program::table_of(256), second = program::table_of(256), third = program::list_of(64);
  const std::string text = words_of(memory::live_blocks_text());
  EXPECT_EQ(text.substr(0, text.find('\n')), "2.25 KiB still live on cpu:0 in 3 blocks") << text;
  EXPECT_TRUE(words_of(memory::live_blocks_text(kCPU, 1)).ends_with("program::table_of\n  … and 1 more\n")) << text;
}

TEST(LiveRecordingRules, EndsWithTheLastOneAndNestedOnesLeaveTheOuterOne) {
  EXPECT_EQ(refusal_of([] { memory::mark(); }),
            "a mark on cpu:0: nothing is known of what lives there; keep a tenon::memory::LiveRecording");
  {
    const LiveRecording outer;
    EXPECT_EQ(outer.device().str(), "cpu:0");
    {
      const LiveRecording inner;
      const Tensor x = program::table_of(4);
      EXPECT_EQ(memory::live_tensors().size(), 1U);
    }
    const Tensor x = program::table_of(4);
    EXPECT_EQ(memory::live_tensors().size(), 1U);
    EXPECT_EQ(memory::mark().blocks.size(), 1U);
  }
  EXPECT_NE(refusal_of([] { memory::mark(); }), "");
  {
    const LiveRecording of_blocks(kCPU, /*lists_tensors=*/false);
    const Tensor x = program::table_of(4);
    EXPECT_EQ(memory::live_tensors().size(), 0U);
    EXPECT_EQ(memory::mark().blocks.size(), 1U);
  }
  record_memory_history({.max_entries = 100});
  {
    const LiveRecording recording;
    EXPECT_EQ(refusal_of([] { memory::mark(); }), "");
  }
  EXPECT_NE(refusal_of([] { memory::mark(); }), "") << "the history of before keeps nothing that lives";
  stop_memory_history();
}

TEST(LiveRecordingRules, WhatAHistoryTookBeforeIsInNoMarkAndKeepsItsStack) {
  for (const int stack_every : {1, 3}) {
    record_memory_history({.stacks = StackContext::kAlloc, .stack_every = static_cast<std::uint32_t>(stack_every)});
    std::vector<Tensor> early;
    for (int i = 0; i < 6; ++i) early.push_back(ones({4}));
    const auto known = [&] {
      return std::ranges::count_if(early, [](const Tensor& tensor) {
        return device_state(kCPU).history().live_stack(reinterpret_cast<std::uintptr_t>(tensor.data_ptr())) != 0;
      });
    };
    EXPECT_EQ(known(), 6 / stack_every);
    for (int again = 0; again < 2; ++again) {
      const LiveRecording recording;
      EXPECT_TRUE(memory::mark().blocks.empty());
      early.push_back(ones({4}));
      EXPECT_EQ(memory::mark().blocks.size(), 1U);
      early.pop_back();
    }
    EXPECT_EQ(known(), 6 / stack_every);
    early.clear();
    stop_memory_history();
  }
}

TEST(LiveRecordingRules, NoHistoryGoesOnThatNobodyHadBegunAndOneWithoutStacksGetsThemMeanwhile) {
  History& history = device_state(kCPU).history();
  ASSERT_FALSE(history.recording());
  {
    const LiveRecording recording;
    EXPECT_TRUE(history.recording());
  }
  EXPECT_FALSE(history.recording());
  record_memory_history({.max_entries = 100, .stacks = StackContext::kNone});
  {
    const LiveRecording recording;
    const Mark before = memory::mark();
    const Tensor x = program::table_of(4);
    const MarkDiff diff = memory::diff(before, memory::mark());
    ASSERT_EQ(diff.rows.size(), 1U);
    EXPECT_TRUE(diff.rows[0].site.starts_with("program::table_of")) << diff.rows[0].site;
  }
  EXPECT_EQ(history.settings().stacks, StackContext::kNone);
  stop_memory_history();
}

TEST(LiveRecordingRules, GoesOnWhateverHistoryIsBegunAndEndedMeanwhile) {
  History& history = device_state(kCPU).history();
  const auto blocks = [] { return memory::mark().blocks.size(); };
  {
    const LiveRecording recording;
    const Tensor first = program::table_of(4);
    record_memory_history({.max_entries = 2});
    EXPECT_EQ(history.settings().max_entries, 2U);
    const Tensor second = program::table_of(4);
    EXPECT_EQ(blocks(), 2U);
    EXPECT_EQ(history.events().size(), 1U);
    stop_memory_history();
    const Tensor third = program::table_of(4);
    EXPECT_EQ(blocks(), 3U);
    EXPECT_EQ(history.events().size(), 0U) << "the ring is the history's";
    const MarkDiff all = memory::diff({.name = {}, .device = recording.device(), .blocks = {}}, memory::mark());
    ASSERT_EQ(all.rows.size(), 1U);
    EXPECT_EQ(all.rows[0].blocks, 3);
    EXPECT_TRUE(all.rows[0].site.starts_with("program::table_of")) << all.rows[0].site;
    record_memory_history({.max_entries = 2});
  }
  EXPECT_TRUE(history.recording()) << "the program's own history goes on";
  EXPECT_FALSE(history.settings().keeps_live);
  stop_memory_history();
  EXPECT_FALSE(history.recording());
}

TEST(LiveRecordingRules, OfTwoTheOneThatEndsFirstLeavesTheOtherWhatItKnows) {
  for (const bool older_first : {true, false}) {
    auto older = std::make_unique<LiveRecording>(), younger = std::make_unique<LiveRecording>();
    const Tensor table = program::table_of(256);
    (older_first ? older : younger).reset();
    EXPECT_EQ(memory::mark("one of them").blocks.size(), 1U) << older_first;
    EXPECT_EQ(memory::live_tensors().size(), 1U) << older_first;
    (older_first ? younger : older).reset();
    EXPECT_NE(refusal_of([] { memory::mark("none"); }), "") << older_first;
  }
}

TEST(LiveRecordingRules, MarksOfTwoDevicesHaveNoDifference) {
  const LiveRecording here;
  Mark other = memory::mark();
  other.device = Device("meta");
  EXPECT_EQ(refusal_of([&] { memory::diff(memory::mark(), other); }).substr(0, 33),
            "a difference of marks on cpu:0 an");
}

TEST(LiveTablesDeathTest, TwoRequestsForATableAtTheEndAreOne) {
  const auto ends_twice = [] {
    memory::report_live_at_exit();
    memory::report_live_at_exit();
    [[maybe_unused]] static const auto* kept = new Tensor(program::table_of(256));
    std::exit(0);
  };
  EXPECT_EXIT(ends_twice(), testing::ExitedWithCode(0),
              "^tenon: at exit 1.00 KiB still live on cpu:0 in 1 block\n[^\n]*program::table_of[^\n]*\n$");
}

TEST(LiveTablesDeathTest, TheEnvironmentAsksForATableAtTheEndWithAWordForYes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the program begins anew, with the variable
  const auto ends = [] {
    [[maybe_unused]] static const auto* kept = new Tensor(program::table_of(256));
    std::exit(0);
  };
  for (const char* yes : {"1", "on"}) {
    ::setenv("TENON_LIVE_AT_EXIT", yes, 1);
    EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "tenon: at exit [^\n]* still live on cpu:0 in [0-9]* blocks?\n");
  }
  ::setenv("TENON_LIVE_AT_EXIT", "0", 1);
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "^$");
  ::setenv("TENON_LIVE_AT_EXIT", "/tmp/table.txt", 1);
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0),
              "^tenon: unknown word '/tmp/table.txt' in TENON_LIVE_AT_EXIT[^\n]*\n$");
  ::unsetenv("TENON_LIVE_AT_EXIT");
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace tenon::test
