// The recorder: what it keeps, what it writes, and what of it a kill leaves.
#include "replay/support.h"

#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/replay/results/slice_diff.h>

#include <gmock/gmock.h>
#include <memory/test_policy.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace tenon::replay {
namespace {

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

/// One step of a program: a block that stays, one that goes, one used on another stream.
void tell_step(Recorder& recorder, std::uintptr_t base) {
  recorder.allocated(at(base), 1000, 0);
  recorder.allocated(at(base + 1), 2000, 1);
  recorder.used(at(base + 1), 0);
  recorder.freed(at(base + 1));
}

TEST(Recorder, TheTailIsWhatPassed) {
  Recorder recorder;
  tell_step(recorder, 16);
  recorder.trimmed();
  recorder.mark("step 2");
  tell_step(recorder, 32);
  const Trace trace = recorder.tail("run");
  EXPECT_EQ(trace.facts.events, 9u);
  EXPECT_EQ(trace.facts.allocations, 4u);
  EXPECT_EQ(trace.facts.uses, 2u);
  EXPECT_EQ(trace.facts.empty_caches, 1u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 4000u);
  EXPECT_EQ(trace.facts.end_live_bytes, 2000u);
  EXPECT_EQ(trace.marks, std::vector<std::string>{"step 2"});
  EXPECT_EQ(recorder.lost_events(), 0u);
}

TEST(Recorder, ALongRunKeepsItsEndAndWhatLivedBeforeIt) {
  Recorder recorder(4);
  for (std::uintptr_t step = 0; step < 100; ++step) tell_step(recorder, 16 * (step + 1));
  const Trace trace = recorder.tail("run");
  EXPECT_GE(trace.facts.events, 4u);
  EXPECT_LE(trace.facts.events, 8u + trace.facts.seeded_blocks);
  EXPECT_EQ(trace.facts.end_live_bytes, 100'000u) << "every block that stays is there, seeded or recorded";
  EXPECT_GT(trace.facts.seeded_blocks, 90u);
  EXPECT_EQ(recorder.lost_events() + trace.facts.events - trace.facts.seeded_blocks, 400u);
  EXPECT_EQ(run_job(trace, plain_policy(), {.timed_passes = 0, .time_each_call = false}).failure, "");
}

TEST(Recorder, ARequestThatFailedIsABlockThatIsFreedAtOnce) {
  Recorder recorder;
  recorder.allocated(at(16), 1000, 0);
  recorder.failed(5000, 0);
  const Trace trace = recorder.tail("run");
  EXPECT_EQ(trace.facts.events, 3u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 6000u);
  EXPECT_EQ(trace.facts.end_live_bytes, 1000u);
}

TEST(Recorder, AFailureThatTheHostMendedIsNone) {
  AddressOnlySource source({.capacity_bytes = 8192});
  const auto recorder = std::make_shared<Recorder>();
  add_private_layer(recording_layer("test recorder", recorder));
  const auto stack = tenon::test::make_stack(source, {{"test recorder", {}}});
  stack->deallocate(stack->allocate({.bytes = 6144}));
  stack->deallocate(stack->allocate({.bytes = 8192}));  // fits once the cache is given back, which the host does
  EXPECT_EQ(recorder->tail("run").facts.allocations, 2u);
  EXPECT_EQ(recorder->tail("run").facts.empty_caches, 1u);
  EXPECT_THROW(stack->allocate({.bytes = 16384}), OutOfMemory);
  EXPECT_EQ(recorder->tail("run").facts.peak_requested_bytes, 16384u) << "a failure that reached the program is one";
}

TEST(Recorder, AFailureThatTheHostMendedIsNotInTheFileEither) {
  const std::string path = scratch("mended.trace");
  Recorder recorder;
  recorder.write_to(path, {});
  recorder.failed(8192, 0);
  recorder.trimmed();
  recorder.allocated(at(16), 8192, 0);
  recorder.failed(8192, 0);
  recorder.trimmed();
  recorder.failed(8192, 0);  // in vain: one failure, not two
  recorder.explain_failure(9000, 70);
  recorder.freed(at(16));
  recorder.close();
  const Trace trace = read_traces(path).front();
  EXPECT_TRUE(difference(recorder.tail("run"), trace).are_equal) << difference(recorder.tail("run"), trace).what;
  EXPECT_EQ(trace.facts.empty_caches, 2u);
  ASSERT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms[0].capacity_bytes(), 9070u);
  EXPECT_EQ(recorder.tail("run").ooms.size(), 1u);
  std::filesystem::remove(path);
}

TEST(Recorder, AMarkThatPushesTheOldestOutKeepsItsName) {
  Recorder recorder(2);
  recorder.mark("one");
  for (std::uintptr_t i = 0; i < 3; ++i) recorder.allocated(at(16 + i), 1000, 0);
  recorder.mark("two");
  EXPECT_EQ(recorder.tail("run").marks.back(), "two");
}

TEST(Recorder, BothFilesHoldWhatTheTailHolds) {
  const std::string binary = scratch("both.tenon"), text = scratch("both.trace.gz");
  Recorder recorder;
  recorder.write_to(binary, {{"name", "both"}});
  recorder.write_to(text, {{"name", "both"}});
  for (std::uintptr_t step = 0; step < 20; ++step) {
    recorder.mark("step " + std::to_string(step + 1));
    tell_step(recorder, 16 * (step + 1));
  }
  recorder.failed(7, 1);
  recorder.close();
  const Trace tail = recorder.tail("both");
  for (const std::string& path : {binary, text}) {
    const std::vector<Trace> read = read_traces(path);
    ASSERT_EQ(read.size(), 1u);
    EXPECT_TRUE(difference(tail, read.front()).are_equal) << path << ": " << difference(tail, read.front()).what;
    EXPECT_EQ(read.front().header.at("name"), "both");
    std::filesystem::remove(path);
  }
}

TEST(Recorder, AKilledProcessLeavesEverythingUpToItsLastMark) {
  const std::string path = scratch("killed.tenon");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Recorder recorder;
    recorder.write_to(path, {{"name", "killed"}});
    tell_step(recorder, 16);
    tell_step(recorder, 32);
    recorder.mark("step 3");
    tell_step(recorder, 48);  // never reaches the file
    ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Trace trace = read_traces(path).front();
  EXPECT_EQ(trace.facts.events, 8u);
  EXPECT_EQ(trace.facts.end_live_bytes, 2000u);
  EXPECT_EQ(trace.marks, std::vector<std::string>{"step 3"});
  std::filesystem::remove(path);
}

TEST(Recorder, ChunkCutInTheMiddleIsLeftOut) {
  const std::string path = scratch("cut.tenon");
  Recorder recorder;
  recorder.write_to(path, {});
  tell_step(recorder, 16);
  recorder.mark("one");
  tell_step(recorder, 32);
  recorder.mark("two");
  recorder.close();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  const Trace trace = read_traces(path).front();
  EXPECT_EQ(trace.facts.events, 4u);
  EXPECT_THAT(trace.notes, ::testing::Not(::testing::IsEmpty())) << "the reader says that the end is missing";
  std::filesystem::remove(path);
}

TEST(Recorder, AFileThatCannotBeWrittenIsSaidAtOnce) {
  Recorder recorder;
  EXPECT_THROW(recorder.write_to("/no/such/folder/memory.tenon", {}), Error);
}

TEST(Recorder, WritesTheLinesOfTheTraceLayer) {
  const std::string layers = scratch("layer.trace"), recorders = scratch("recorder.trace");
  const auto recorder = std::make_shared<Recorder>();
  recorder->write_to(recorders, {});
  add_private_layer(recording_layer("test recorder of lines", recorder));
  {
    AddressOnlySource source({.capacity_bytes = 8192});
    const auto stack = tenon::test::make_stack(source, {{"test recorder of lines", {}}, {"trace", {{"file", layers}}}});
    stack->mark("tenon:failed 1 2 3");
    const Block block = stack->allocate({.bytes = 6144, .stream = {1}});
    stack->record_use(block, {2});
    stack->deallocate(block, {3});
    stack->deallocate(stack->allocate({.bytes = 8192}));  // after the host has given back the cache
    stack->mark("two\nlines");
    stack->trim();
  }
  recorder->close();
  const auto lines_of = [](const std::string& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with('#')) lines.push_back(line);
    }
    return lines;
  };
  EXPECT_EQ(lines_of(layers), lines_of(recorders));
  EXPECT_EQ(lines_of(layers).size(), 10u);
  for (const std::string& path : {layers, recorders}) std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::replay
