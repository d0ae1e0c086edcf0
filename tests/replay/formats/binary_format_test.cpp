// Tenon's own trace file: round trips, and what a kill or a flipped bit leaves.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/slice_diff.h>

#include <fstream>
#include <sstream>

namespace tenon::replay {
namespace {

TEST(BinaryTrace, ARealHistoryComesBackUnchangedAndSmall) {
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  const std::string path = test::scratch_folder() + "history.tenon";
  write_trace(trace, path);
  const Trace back = read_traces(path).front();
  EXPECT_TRUE(difference(trace, back).are_equal) << difference(trace, back).what;
  EXPECT_EQ(back.marks, trace.marks);
  EXPECT_EQ(back.header.at("name"), trace.header.at("name"));
  EXPECT_LT(std::filesystem::file_size(path), trace.facts.events * 5);
}

TEST(BinaryTrace, KeepsStacksAndDeferredFrees) {
  const std::string path = test::scratch_folder() + "stacks.tenon";
  BinaryTraceWriter writer(path);
  const std::vector<StackFrame> stack = {{"forward", "model.py", 7}, {"main", "train.py", 3}};
  const auto first = writer.allocate(100, 0, stack);
  const auto second = writer.allocate(100, 9, stack);
  writer.free(first, true);
  writer.use(second, 0);
  writer.free_completed(first);
  writer.close();
  const Trace trace = read_one(content(path), {.with_stacks = true});
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  EXPECT_EQ(trace.facts.uses, 1u);
  ASSERT_EQ(trace.stack_of_allocation.size(), 2u);
  EXPECT_EQ(trace.stack_of_allocation[0], trace.stack_of_allocation[1]) << "one stack, written once";
  EXPECT_EQ(trace.stacks.frames[trace.stacks.stacks[trace.stack_of_allocation[0]][0]].name, "forward");
}

TEST(BinaryTrace, IsValidUpToTheLastFlush) {
  const std::string path = test::scratch_folder() + "killed.tenon";
  BinaryTraceWriter writer(path);
  writer.allocate(100, 0);
  writer.flush();
  writer.allocate(200, 0);
  writer.flush();
  const std::string whole = content(path);
  for (std::size_t size = whole.size() - 1; size > whole.size() - 8; --size) {
    const Trace trace = read_one(whole.substr(0, size));
    EXPECT_EQ(trace.facts.allocations, 1u);
    EXPECT_NE(trace.notes.front().find("was cut"), std::string::npos);
  }
}

TEST(BinaryTrace, ACutConversionKeepsWhatCameBefore) {
  const std::string path = test::scratch_folder() + "half.tenon";
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  write_trace(trace, path);
  const std::string whole = content(path);
  const Trace half = read_one(whole.substr(0, whole.size() / 2));
  EXPECT_GT(half.facts.events, trace.facts.events / 4);
  EXPECT_NE(half.notes.front().find("was cut"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(BinaryTrace, ReadsTheFirstVersion) {
  const std::string path = test::scratch_folder() + "old.tenon";
  write_trace(read_one("a 0 100 0\nf 0\n"), path);
  std::string bytes = content(path);
  bytes[8] = 1;
  EXPECT_EQ(read_one(bytes).facts.events, 2u);
  std::filesystem::remove(path);
}

TEST(BinaryTrace, NoticesEveryFlippedBitInAChunk) {
  const std::string path = test::scratch_folder() + "flipped.tenon";
  BinaryTraceWriter writer(path);
  for (int i = 0; i < 20; ++i) writer.allocate(100 + static_cast<std::uint64_t>(i), 0);
  writer.close();
  const std::string whole = content(path);
  for (std::size_t at = 17; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_NE(refusal_of(damaged).find("checksum"), std::string::npos) << at;
  }
}

TEST(BinaryTrace, RefusesANewerVersion) { EXPECT_NE(refusal_of("TENONTRC\x09").find("version 9"), std::string::npos); }

TEST(TextWriter, ARealHistoryComesBackUnchanged) {
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  const std::string path = test::scratch_folder() + "history.trace.gz";
  write_trace(trace, path);
  const Trace back = read_traces(path).front();
  EXPECT_TRUE(difference(trace, back).are_equal);
  EXPECT_EQ(back.marks, trace.marks);
}

TEST(ChromeWriter, WritesWhatAJsonReaderAccepts) {
  const Trace trace = read_one("a 0 8 0\nm say \"hi\"\nf 0\n");
  const std::string path = test::scratch_folder() + "counters.json";
  write_trace(trace, path);
  EXPECT_NE(refusal_of(content(path)).find("no [memory] events"), std::string::npos)
      << "valid JSON, without a profiler's events";
}

TEST(FoldedWriter, NeedsStacks) {
  EXPECT_THROW(write_trace(read_one("a 0 8 0\n"), test::scratch_folder() + "x.folded"), Error);
}

}  // namespace
}  // namespace tenon::replay
