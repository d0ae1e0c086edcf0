// The Chrome trace: the fields that its readers rely on, memory, arrows; and the other files.
#include "profiler/small_model.h"
#include "profiler/text_of.h"

#include "support/expect_error.h"
#include "support/json.h"
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/profiler/exports.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/allocator_spec.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using nlohmann::json;
using profiler::Profile;
using ::testing::HasSubstr;

/// A recorded training step with everything on.
Profile& recorded() {
  static Profile* const profile = [] {
    auto* recorded = new Profile({.record_shapes = true, .profile_memory = true, .with_flops = true});
    SmallTraining training;
    recorded->start();
    {
      const profiler::record_function label("step \"one\"");
      training.step();
    }
    recorded->stop();
    return recorded;
  }();
  return *profile;
}

json trace() {
  const std::string path = scratch_folder() + "trace.json";
  recorded().export_chrome_trace(path);
  return parse_json(text_of(path));
}

/// The events of the trace, as long as the program.
const json& events() {
  static const json* const all = new json(trace()["traceEvents"]);
  return *all;
}

/// What an event of each phase must have, of which types: the Trace Event Format.
void check_event(const json& event) {
  ASSERT_TRUE(event.contains("ph") && event.contains("name") && event.contains("pid") && event.contains("ts"))
      << event.dump();
  EXPECT_TRUE(event["name"].is_string() && event["pid"].is_number_integer() && event["ts"].is_number());
  EXPECT_GE(event["ts"].get<double>(), 0);
  const std::string phase = event["ph"];
  EXPECT_TRUE(std::string("XiCMsf").find(phase) != std::string::npos) << phase;
  EXPECT_TRUE(phase == "C" || event.contains("tid")) << event.dump();
  if (phase == "X") {
    EXPECT_TRUE(event["dur"].is_number()) << event.dump();
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_TRUE(event["args"].is_object() && event["cat"].is_string());
  }
  if (phase == "C") {
    for (const auto& [key, value] : event["args"].items()) EXPECT_TRUE(value.is_number()) << key;
  }
  EXPECT_TRUE(phase != "i" || event["s"] == "t" || event["s"] == "p") << event.dump();
  EXPECT_TRUE((phase != "s" && phase != "f") || event.contains("id")) << event.dump();
}

TEST(ChromeTrace, HasTheFieldsOfTheTraceEventFormat) {
  const json read = trace();
  ASSERT_TRUE(read["traceEvents"].is_array());
  EXPECT_GT(read["traceEvents"].size(), 50u);
  EXPECT_EQ(read["schemaVersion"], 1);
  for (const json& event : read["traceEvents"]) check_event(event);
}

TEST(ChromeTrace, ShowsOperatorsLabelsAndModules) {
  std::map<std::string, std::set<std::string>> names;
  for (const json& event : events())
    if (event.contains("cat")) names[event["cat"]].insert(event["name"].get<std::string>());
  EXPECT_TRUE(names["cpu_op"].contains("aten::linear"));
  EXPECT_TRUE(names["user_annotation"].contains("step \"one\""));
  EXPECT_TRUE(names["module"].contains("encoder"));
}

TEST(ChromeTrace, DrawsAnArrowFromEachOperatorToItsBackwardNode) {
  std::map<int, json> starts, ends;
  std::map<double, std::string> begins;
  for (const json& event : events()) {
    if (event["ph"] == "s") starts[event["id"]] = event;
    if (event["ph"] == "f") ends[event["id"]] = event;
    if (event["ph"] == "X") begins.try_emplace(event["ts"].get<double>(), event["name"].get<std::string>());
  }
  EXPECT_GE(starts.size(), 4u);  // two layers, relu, the loss
  ASSERT_EQ(starts.size(), ends.size());
  for (const auto& [id, start] : starts) {
    ASSERT_TRUE(ends.contains(id));
    EXPECT_LT(start["ts"], ends[id]["ts"]);
    EXPECT_THAT(begins[start["ts"].get<double>()], HasSubstr("aten::"));
    EXPECT_THAT(begins[ends[id]["ts"].get<double>()], HasSubstr("Backward"));
  }
}

TEST(ChromeTrace, KernelsOfAStreamFollowEachOtherWithoutOverlap) {
  profiler::Recording recording;
  double end_us = 0.1;
  for (int i = 0; i < 1000; ++i) {
    const double duration_us = 0.3337 + 0.0011 * (i % 7);
    recording.device_events.push_back({.name = "kernel",
                                       .device = Device(kSimulated, 0),
                                       .start_us = end_us,
                                       .duration_us = duration_us,
                                       .is_virtual = true});
    end_us += duration_us;
  }
  const std::string path = scratch_folder() + "kernels.json";
  profiler::write_chrome_trace(recording, path);
  double last_us = 0;
  const json read = parse_json(text_of(path));
  for (const json& event : read["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start_us = event["ts"].get<double>();
    EXPECT_GE(std::llround(1000 * start_us), std::llround(1000 * last_us));
    last_us = start_us + event["dur"].get<double>();
  }
  EXPECT_NEAR(last_us, end_us, 0.001);
}

TEST(ChromeTrace, HasMemoryAsPyTorchWritesItWithTotalsThatFollowFromTheBytes) {
  std::int64_t total = -1;
  std::size_t found = 0;
  for (const json& event : events()) {
    if (event["name"] != "[memory]") continue;
    ++found;
    const json& args = event["args"];
    for (const char* key : {"Addr", "Bytes", "Device Type", "Device Id", "Total Allocated", "Total Reserved", "Ev Idx"})
      EXPECT_TRUE(args[key].is_number_integer()) << key;
    if (total >= 0) {
      EXPECT_EQ(args["Total Allocated"].get<std::int64_t>(), total + args["Bytes"].get<std::int64_t>());
    }
    total = args["Total Allocated"];
    EXPECT_GE(args["Total Reserved"].get<std::int64_t>(), 0);
  }
  EXPECT_GT(found, 10u);
}

TEST(ChromeTrace, IsAHistoryForReplay) {
  const std::string path = scratch_folder() + "replayed.json";
  recorded().export_chrome_trace(path);
  const auto traces = replay::read_traces(path);
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].format, "chrome");
  std::size_t allocations = 0;
  for (const profiler::MemoryEvent& event : recorded().recording().memory) allocations += event.bytes > 0;
  EXPECT_GE(traces[0].events.size(), allocations);
}

TEST(MemoryHistory, IsReadByReplayWithWhatLivedBefore) {
  const Tensor early = ones({256}), larger = ones({3000});
  const MemoryStats before = device_state(kCPU).allocator().stats();
  Profile profile({.profile_memory = true});
  profile.start();
  {
    Tensor mine = early;
    const Tensor a = ones({16});
    const Tensor b = a + 1;
  }
  profile.stop();
  const std::string path = scratch_folder() + "history.trace";
  profile.export_memory_history(path);
  const auto traces = replay::read_traces(path);
  ASSERT_EQ(traces.size(), 1u);
  const std::size_t seeds = traces[0].facts.seeded_blocks;
  EXPECT_EQ(seeds, static_cast<std::size_t>(before.allocations.current)) << "one by one";
  std::vector<std::uint64_t> sizes;
  for (const replay::TraceEvent& event : traces[0].events)
    if (event.kind == replay::EventKind::kAllocate) sizes.push_back(event.bytes);
  ASSERT_EQ(sizes.size(), seeds + 2);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(seeds), std::int64_t{0}),
            before.requested_bytes.current);
  EXPECT_THAT(sizes, ::testing::IsSupersetOf({1024U, 12000U}));
  EXPECT_EQ(sizes.back(), 64U);
}

TEST(MemoryHistory, AndTheChromeTraceAreReadByReplayWithoutThePageLockedMemory) {
  device_state(Device(kSimulated, 0));
  Profile profile({.profile_memory = true});
  const std::int64_t before = device_state(kCPU).allocator().stats().requested_bytes.current;
  profile.start();
  std::vector<Tensor> kept;
  for (const bool is_pinned : {true, false, true, false})
    kept.push_back(empty({100}, TensorOptions(kFloat).pinned_memory(is_pinned)));
  const std::int64_t after = device_state(kCPU).allocator().stats().requested_bytes.current;
  profile.stop();
  const std::string folder = scratch_folder();
  profile.export_memory_history(folder + "host.trace");
  profile.export_chrome_trace(folder + "host.json");
  for (const char* name : {"host.trace", "host.json"}) {
    const auto traces = replay::read_traces(folder + name);
    ASSERT_EQ(traces.size(), 1u) << name;
    std::int64_t live = 0;
    for (const replay::TraceEvent& event : traces[0].events)
      if (event.kind == replay::EventKind::kAllocate) live += static_cast<std::int64_t>(event.bytes);
    EXPECT_EQ(live, after) << name << ", of which " << before << " from before";
  }
  EXPECT_THAT(text_of(folder + "host.json"),
              ::testing::AllOf(HasSubstr("\"[page-locked memory]\""), HasSubstr("\"name\":\"page-locked memory\"")));
}

TEST(MemoryHistory, HasWhatAnAllocatorDidThatServedForAWhile) {
  Profile profile({.profile_memory = true});
  profile.start();
  const auto usual = swap_allocator(allocator_from_spec("direct"));
  empty({100});
  device_state(kCPU).swap_allocator(usual);
  profile.stop();
  ASSERT_EQ(profile.recording().memory.size(), 2u);
  for (const profiler::MemoryEvent& event : profile.recording().memory) EXPECT_EQ(event.device, Device(kCPU, 0));
}

TEST(MemoryHistory, IsRefusedWhereMemoryWasNotRecorded) {
  Profile profile;
  profile.start();
  profile.stop();
  expect_error([&] { profile.export_memory_history(scratch_folder() + "none.trace"); }, "profile_memory");
}

TEST(MemoryHistory, AndTheChromeTraceOfARecordingReachTheSamePeak) {
  const Tensor kept = ones({5000});
  Tensor freed = ones({300});
  Profile profile({.profile_memory = true});
  profile.start();
  freed.reset();
  SmallTraining training;
  training.step();
  profile.stop();
  const std::string folder = scratch_folder();
  profile.export_memory_history(folder + "both.trace");
  profile.export_chrome_trace(folder + "both.json");
  const auto history = replay::read_traces(folder + "both.trace"), trace = replay::read_traces(folder + "both.json");
  ASSERT_EQ(history.size(), 1u);
  ASSERT_EQ(trace.size(), 1u);
  const auto peak = [](const replay::Trace& of) { return replay::ideal_row(of, std::nullopt).peak_reserved_bytes; };
  EXPECT_GE(peak(history[0]), 4u * 5000);
  EXPECT_EQ(peak(history[0]), peak(trace[0]));
}

TEST(MemoryHistory, OfADeviceThatTheRecordingHasNothingOfIsRefusedWithThoseThatItHas) {
  EXPECT_THAT([] { recorded().export_memory_history(scratch_folder() + "none.trace", Device(kSimulated, 7)); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::AllOf(HasSubstr("no memory of simulated:7"), HasSubstr("that of cpu"))));
  profiler::Recording nothing;
  nothing.has_memory = true;
  expect_error([&] { profiler::write_memory_history(nothing, scratch_folder() + "none.trace", kCPU); },
               "nor of any other device");
}

TEST(FoldedStacks, OfMemoryAreRefusedWhereMemoryWasNotRecorded) {
  Profile profile;
  profile.start();
  ones({2});
  profile.stop();
  for (const char* metric : {"self_cpu_memory_usage", "self_cuda_memory_usage"})
    EXPECT_THAT([&] { profile.export_stacks(scratch_folder() + "none.txt", metric); },
                ::testing::ThrowsMessage<Error>(HasSubstr("profile_memory")))
        << metric;
}

TEST(FoldedStacks, AddUpToTheTimeThatTheTableShows) {
  const std::string path = scratch_folder() + "folded.txt";
  recorded().export_stacks(path, "self_cpu_memory_usage");
  std::int64_t bytes = 0, allocated = 0;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    const auto blank = line.rfind(' ');
    ASSERT_NE(blank, std::string::npos) << line;
    bytes += std::stoll(line.substr(blank + 1));
  }
  for (const profiler::MemoryEvent& event : recorded().recording().memory)
    allocated += std::max<std::int64_t>(event.bytes, 0);
  EXPECT_EQ(bytes, allocated);
  EXPECT_THAT(text_of(path), HasSubstr("step \"one\";SmallNet;encoder;aten::linear;aten::addmm 320"));
}

TEST(FoldedStacks, RefuseAnUnknownMetricWithThoseThereAre) {
  EXPECT_THAT(
      [] { recorded().export_stacks(scratch_folder() + "none.txt", "wall_time"); },
      ::testing::ThrowsMessage<Error>(::testing::AllOf(HasSubstr("'wall_time'"), HasSubstr("self_cpu_time_total"))));
}

TEST(ChromeTrace, NumbersItsEventsFromOneAndFromZero) {
  for (const json& event : events()) {
    if (event["ph"] != "X" || !event["args"].contains("Ev Idx")) continue;
    EXPECT_EQ(event["args"]["External id"].get<int>(), event["args"]["Ev Idx"].get<int>() + 1) << event.dump();
  }
}

TEST(ChromeTrace, NamesTheThreadOfTheForwardPassForBackwardNodesAlone) {
  int nodes = 0;
  for (const json& event : events()) {
    if (event["ph"] != "X" || !event["args"].contains("Fwd thread id")) continue;
    ++nodes;
    EXPECT_THAT(event["name"].get<std::string>(), HasSubstr("Backward"));
  }
  EXPECT_GE(nodes, 4);
}

TEST(ChromeTrace, DrawsOneArrowFromAnOperator) {
  std::set<double> begins;
  for (const json& event : events())
    EXPECT_TRUE(event["ph"] != "s" || begins.insert(event["ts"].get<double>()).second) << event.dump();
}

TEST(FoldedStacks, OfMemoryCountWhatWasAllocatedWhateverWasFreed) {
  profiler::Recording recording;
  recording.has_memory = true;
  profiler::MemoryEvent memory{};
  memory.event = profiler::kNone;
  memory.device = kCPU;
  for (const std::int64_t bytes : {100, -100, 50}) {
    memory.bytes = bytes;
    recording.memory.push_back(memory);
  }
  const std::string path = scratch_folder() + "freed.txt";
  profiler::write_folded_stacks(recording, path, "self_cpu_memory_usage");
  EXPECT_EQ(text_of(path), "[memory] 150\n");
}

TEST(ChromeTrace, NamesTheSequenceNumberOfWhatHasANodeAlone) {
  std::size_t with = 0;
  for (const json& event : events()) {
    if (event["ph"] != "X" || !event["args"].contains("Ev Idx")) continue;
    const auto& recorded_event = recorded().recording().events.at(event["args"]["Ev Idx"].get<std::size_t>());
    EXPECT_EQ(event["args"].contains("Sequence number"), recorded_event.node != nullptr) << event.dump();
    if (recorded_event.node == nullptr) continue;
    ++with;
    EXPECT_EQ(event["args"]["Sequence number"].get<std::uint64_t>(), recorded_event.sequence);
  }
  EXPECT_GE(with, 8u);  // operators and their backward nodes
}

TEST(ChromeTrace, TellsTheMemoryOfDevicesByPyTorchsNumbersAndTheHostsByMinusOne) {
  profiler::Recording recording;
  for (const Device& device : {Device(kCPU, 0), Device(kSimulated, 3), Device(kCUDA, 2), Device(kCPU)})
    recording.memory.push_back({.bytes = 8, .allocated_bytes = 8, .reserved_bytes = 64, .device = device});
  const std::string path = scratch_folder() + "devices.json";
  profiler::write_chrome_trace(recording, path);
  std::vector<std::pair<int, int>> numbers;
  const json read = parse_json(text_of(path));
  for (const json& event : read["traceEvents"])
    if (event["name"] == "[memory]") numbers.emplace_back(event["args"]["Device Type"], event["args"]["Device Id"]);
  EXPECT_THAT(numbers, ::testing::ElementsAre(std::pair(0, -1), std::pair(20, 3), std::pair(1, 2)));
}

}  // namespace
}  // namespace tenon::test
