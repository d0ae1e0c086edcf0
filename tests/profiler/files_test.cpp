// What stands in the files of a recording that was made by hand: every field of the Chrome trace, folded stacks,
// histories.
#include "profiler/text_of.h"

#include "support/json.h"
#include "support/scratch_folder.h"

#include <tenon/profiler/exports.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using nlohmann::json;

TEST(FoldedStacks, BeginWithTheProgramsFunctionsTheOutermostFirst) {
  profiler::Recording recording;
  recording.events = {{.kind = profiler::EventKind::kLabel, .name = "a;b", .self_ns = 2600, .stack = {"inner", "main"}},
                      {.name = "aten::mm", .parent = 0, .self_ns = 1400, .self_device_us = 7}};
  const std::string path = scratch_folder() + "frames.txt";
  profiler::write_folded_stacks(recording, path, "self_cpu_time_total");
  EXPECT_EQ(text_of(path), "main;inner;a:b 3\nmain;inner;a:b;aten::mm 1\n");
  profiler::write_folded_stacks(recording, path, "self_cuda_time_total");
  EXPECT_EQ(text_of(path), "main;inner;a:b;aten::mm 7\n");
}

TEST(FoldedStacks, AddUpWhatIsShorterThanAMicrosecond) {
  profiler::Recording recording;
  for (int i = 0; i < 10; ++i) recording.events.push_back({.name = "aten::add", .self_ns = 400, .self_device_us = 0.3});
  recording.events.push_back({.name = "aten::mul", .self_ns = 499});
  const std::string path = scratch_folder() + "short.txt";
  profiler::write_folded_stacks(recording, path, "self_cpu_time_total");
  EXPECT_EQ(text_of(path), "aten::add 4\n");
  profiler::write_folded_stacks(recording, path, "self_device_time_total");
  EXPECT_EQ(text_of(path), "aten::add 3\n");
}

TEST(FoldedStacks, HaveAnEventBelowTheCallsThatHadComeToItWhateverTheirLines) {
  profiler::Recording recording;
  recording.events = {
      {.kind = profiler::EventKind::kLabel, .name = "label", .self_ns = 1000, .stack = {"a.cpp(5): main"}},
      {.kind = profiler::EventKind::kModule, .name = "net", .parent = 0},
      {.name = "aten::mm", .parent = 1, .self_ns = 2000, .stack = {"b.cpp(9): f", "a.cpp(7): main"}},
      {.name = "aten::add", .parent = 2, .self_ns = 3000, .stack = {"b.cpp(2): g", "b.cpp(9): f", "a.cpp(7): main"}},
      {.kind = profiler::EventKind::kCopy, .name = "copy", .parent = 3, .self_ns = 4000},
      {.name = "aten::mul", .parent = 0, .self_ns = 5000, .stack = {"c.cpp(1): worker"}}};
  const std::string path = scratch_folder() + "frames.txt";
  profiler::write_folded_stacks(recording, path, "self_cpu_time_total");
  EXPECT_EQ(text_of(path),
            "a.cpp(5): main;label 1\n"
            "a.cpp(7): main;label;b.cpp(9): f;net;aten::mm 2\n"
            "a.cpp(7): main;label;b.cpp(9): f;net;aten::mm;b.cpp(2): g;aten::add 3\n"
            "a.cpp(7): main;label;b.cpp(9): f;net;aten::mm;b.cpp(2): g;aten::add;copy 4\n"
            "label;c.cpp(1): worker;aten::mul 5\n");
}

TEST(MemoryHistory, IsThatOfOneDevice) {
  profiler::Recording recording;
  recording.has_memory = true;
  std::uint64_t address = 0;
  for (const Device& device : {Device(kCPU, 0), Device(kSimulated, 0), Device(kSimulated, 1), Device(kCPU)})
    recording.memory.push_back(
        {.address = ++address, .bytes = 100 * static_cast<std::int64_t>(address), .device = device});
  const auto sizes = [&](Device device) {
    const std::string path = scratch_folder() + "one.trace";
    profiler::write_memory_history(recording, path, device);
    std::vector<std::size_t> bytes;
    for (const char* size : {" 100 0", " 200 0", " 300 0", " 400 0"})
      if (text_of(path).find(size) != std::string::npos) bytes.push_back(std::strtoul(size, nullptr, 10));
    return bytes;
  };
  EXPECT_THAT(sizes(Device(kCPU)), ::testing::ElementsAre(100)) << "page-locked memory is another allocator's";
  EXPECT_THAT(sizes(Device(kSimulated, 0)), ::testing::ElementsAre(200));
  EXPECT_THAT(sizes(Device(kSimulated, 1)), ::testing::ElementsAre(300));
  EXPECT_THAT(sizes(Device(kSimulated)), ::testing::ElementsAre(200, 300)) << "without an index: all of that kind";
}

json written(const profiler::Recording& recording) {
  const std::string path = scratch_folder() + "written.json";
  profiler::write_chrome_trace(recording, path);
  return parse_json(text_of(path));
}

/// The first event of that name, without the number of this process.
json event_named(const json& trace, const std::string& name) {
  for (json event : trace["traceEvents"]) {
    if (event["name"] != name) continue;
    if (event["pid"] < 1'000'000) event.erase("pid");
    return event;
  }
  return {};
}

TEST(ChromeTrace, HasWhatIsKnownOfAnEventAndNothingElse) {
  profiler::Recording recording;
  recording.has_memory = recording.has_flops = true;
  recording.start_unix_ns = 77;
  recording.events = {{.name = "plain", .thread = 2, .start_ns = 1500, .end_ns = 4000},
                      {.name = "full",
                       .thread = 1,
                       .start_ns = 0,
                       .end_ns = 1000,
                       .self_cpu_bytes = 3,
                       .cpu_bytes = 5,
                       .flops = 12,
                       .shapes = "[[2, 3]]",
                       .stack = {"inner", "main"}},
                      {.kind = profiler::EventKind::kCopy, .name = "moved"},
                      {.kind = profiler::EventKind::kPhase, .name = "phase"}};
  const json trace = written(recording);
  EXPECT_EQ(trace["baseTimeNanoseconds"], 77);
  EXPECT_EQ(trace["profile_memory"], 1);
  EXPECT_EQ(trace["with_flops"], 1);
  EXPECT_EQ(trace["record_shapes"], 0);
  EXPECT_EQ(trace["with_stack"], 0);
  EXPECT_EQ(event_named(trace, "plain"),
            parse_json(R"({"ph":"X","cat":"cpu_op","name":"plain","tid":2,"ts":1.5,"dur":2.5,
                           "args":{"External id":1,"Ev Idx":0,"CPU Mem":0,"Self CPU Mem":0}})"));
  EXPECT_EQ(event_named(trace, "full")["args"],
            parse_json(R"({"External id":2,"Ev Idx":1,"Input Dims":[[2,3]],"flops":12,"CPU Mem":5,"Self CPU Mem":3,
                           "Call stack":"inner;\nmain;\n"})"));
  EXPECT_EQ(event_named(trace, "moved")["cat"], "gpu_memcpy");
  EXPECT_EQ(event_named(trace, "phase")["args"], parse_json(R"({"External id":4,"Ev Idx":3})"));
}

TEST(ChromeTrace, HasDevicesAsProcessesStreamsAsThreadsAndCountersOfMemory) {
  profiler::Recording recording;
  const Device device(kSimulated, 1);
  recording.events.resize(1);
  recording.device_events = {
      {.name = "kernel", .device = device, .stream = 0x1'8000'0007, .start_us = 2, .duration_us = 3, .event = 0},
      {.name = "nobodys",
       .device = device,
       .stream = 0x7fff'ffff,
       .start_us = 9,
       .duration_us = 1,
       .is_virtual = true}};
  recording.memory = {{.time_ns = 3000, .bytes = 8, .allocated_bytes = 8, .reserved_bytes = 64, .device = device}};
  recording.allocator_calls = {{.time_ns = 2500, .name = "acquire", .device = device, .bytes = 64, .thread = 3}};
  const json trace = written(recording);
  EXPECT_EQ(event_named(trace, "kernel"),
            parse_json(R"({"ph":"X","cat":"kernel","name":"kernel","pid":1000000,"tid":7,"ts":2.0,"dur":3.0,
              "args":{"device":"simulated:1","stream":6442450951,"virtual time":false,"External id":1}})"));
  EXPECT_EQ(event_named(trace, "nobodys")["tid"], 0x7fff'ffff);
  EXPECT_EQ(event_named(trace, "nobodys")["args"]["virtual time"], true);
  EXPECT_EQ(event_named(trace, "nobodys")["args"]["External id"], 0) << "queued by no event";
  EXPECT_EQ(event_named(trace, "memory of simulated:1")["args"], parse_json(R"({"live bytes":8,"reserved bytes":64})"));
  EXPECT_EQ(event_named(trace, "[memory]")["args"]["Ev Idx"], 1) << "behind the events";
  EXPECT_EQ(event_named(trace, "allocator: acquire"),
            parse_json(R"({"ph":"i","cat":"cpu_instant_event","s":"t","name":"allocator: acquire","tid":3,"ts":2.5,
                           "args":{"device":"simulated:1","bytes":64}})"));
  recording.memory[0].allocated_bytes = -8;  // what lived before was not known
  EXPECT_EQ(event_named(written(recording), "memory of simulated:1")["args"]["live bytes"], 0);
}

TEST(MemoryHistory, IsTheTextThatReplayReadsWithMarksBehindTheLastEvent) {
  profiler::Recording recording;
  recording.has_memory = true;
  recording.marks = {{.time_ns = 2500, .name = "step 1"}, {.time_ns = 5000, .name = "step 2"}};
  recording.memory = {{.time_ns = 1000, .address = 1, .bytes = 1, .stream = 4},
                      {.time_ns = 2000, .address = 2, .bytes = -50},
                      {.time_ns = 3000, .address = 1, .bytes = -1},
                      {.time_ns = 4000, .address = 1, .bytes = 6}};
  for (profiler::MemoryEvent& event : recording.memory) event.device = Device(kCPU, 0);
  const std::string path = scratch_folder() + "text.trace";
  profiler::write_memory_history(recording, path, kCPU);
  EXPECT_EQ(
      text_of(path),
      "# name: profiler\n# device: cpu\na 0 50 0\nm recording starts\n#t 1\na 1 1 4\n#t +1\nf 0\nm step 1\n#t +1\n"
      "f 1\n#t +1\na 2 6 0\nm step 2\n");
}

TEST(MemoryHistory, SaysWhereTheRecordingStartsIfAnythingLivedBefore) {
  profiler::Recording recording;
  recording.has_memory = true;
  recording.memory = {{.time_ns = 1000, .address = 1, .bytes = 8, .device = Device(kCPU, 0)}};
  const std::string path = scratch_folder() + "starts.trace";
  profiler::write_memory_history(recording, path, kCPU);
  EXPECT_EQ(text_of(path), "# name: profiler\n# device: cpu\n#t 1\na 0 8 0\n");
  recording.beginnings = {{.device = Device(kCPU, 0), .bytes = 1}};
  profiler::write_memory_history(recording, path, kCPU);
  EXPECT_EQ(text_of(path), "# name: profiler\n# device: cpu\na 0 1 0\nm recording starts\n#t 1\na 1 8 0\n")
      << "a byte of which only the sum is known is a block, too";
}

}  // namespace
}  // namespace tenon::test
