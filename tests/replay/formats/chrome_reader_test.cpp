// torch.profiler's Chrome traces.
#include "replay/support.h"

#include <tenon/replay/results/trust.h>
#include <tenon/runtime/plugins/plugins.h>

namespace tenon::replay {
namespace {

std::string memory_event(double time, std::uint64_t address, std::int64_t bytes, std::int64_t total, int device = 1) {
  return R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":)" + std::to_string(time) +
         R"(,"args":{"Device Type":)" + std::to_string(device) + R"(,"Device Id":0,"Addr":)" + std::to_string(address) +
         R"(,"Bytes":)" + std::to_string(bytes) + R"(,"Total Allocated":)" + std::to_string(total) +
         R"(,"Total Reserved":4096}})";
}

std::string file(const std::vector<std::string>& events) {
  std::string text =
      R"({"schemaVersion":1,"deep":{"traceEvents":[{"name":"[memory]"}]},"traceEvents":[{"ph":"X","name":"op","ts":0,"args":{"Bytes":"not ours"}})";
  for (const std::string& event : events) text += "," + event;
  return text + "]}";
}

TEST(ChromeReader, PairsByAddressInTimeOrder) {
  const Trace trace = read_one(
      file({memory_event(30, 100, -512, 0), memory_event(10, 100, 512, 512), memory_event(20, 200, 1024, 1536)}));
  EXPECT_EQ(trace.facts.allocations, 2u);
  EXPECT_EQ(trace.facts.frees, 1u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 1536u);
  EXPECT_EQ(trace.facts.seeded_blocks, 0u);
  ASSERT_TRUE(trace.recorded);
  EXPECT_EQ(trace.recorded->peak_reserved_bytes, 4096u);
}

TEST(ChromeReader, ClaimsNoSettingsAndNoDeviceCalls) {
  load_all_plugins();
  const Trace trace = read_one(file({memory_event(10, 100, 512, 512), memory_event(20, 100, -512, 0)}));
  EXPECT_FALSE(trace.recorded->has_settings);
  const Trust trust = judge(trace);
  EXPECT_FALSE(trust.fidelity.is_known);
  EXPECT_EQ(trust.fidelity.sentence().find("which the file was recorded with"), std::string::npos);
  EXPECT_NE(trust.refusal.find("under PyTorch's defaults (it does not say its own), it reserves 2.00 MiB instead of"),
            std::string::npos)
      << trust.refusal;
}

TEST(ChromeReader, SeedsWhatItOnlySeesFreed) {
  const Trace trace = read_one(file({memory_event(10, 100, 512, 1536), memory_event(20, 900, -768, 768)}));
  EXPECT_EQ(trace.facts.seeded_blocks, 2u) << "the freed block, and the rest that is known as a sum";
  EXPECT_EQ(trace.facts.unplaced_bytes, 256u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 1536u);
}

TEST(ChromeReader, LeavesHostMemoryOutBesideADevice) {
  const Trace trace = read_one(file({memory_event(10, 100, 512, 512), memory_event(11, 7, 64, 64, 0)}));
  EXPECT_EQ(trace.facts.allocations, 1u);
  EXPECT_EQ(read_one(file({memory_event(11, 7, 64, 64, 0)})).facts.allocations, 1u)
      << "host memory alone is what the file is about";
}

TEST(ChromeReader, NamesPositionAndReason) {
  EXPECT_NE(refusal_of(R"({"traceEvents":[{"name":"[memory]","args":{"Bytes":1)").find("invalid JSON"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"traceEvents":[]})").find("no [memory] events"), std::string::npos);
  EXPECT_NE(refusal_of(R"([{"name":"[memory]","args":{"Addr":1}}])").find("without \"Bytes\""), std::string::npos);
  EXPECT_NE(refusal_of(R"([{"name":"[memory]","args":{"Addr":1,"Bytes":9223372036854775807}}])").find("out of range"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"([{"name":"[memory]","args":{"Addr":1,"Bytes":1e400}}])").find("file"), std::string::npos);
  EXPECT_NE(refusal_of(file({memory_event(1, 2, 512, 512)}) + "x").find("invalid JSON"), std::string::npos);
}

TEST(ChromeReader, TakesDevicesApartAndCountsFailedRequests) {
  const auto on = [](int device, int bytes) {
    return R"({"name":"[memory]","ts":1,"args":{"Device Type":1,"Device Id":)" + std::to_string(device) +
           R"(,"Addr":4096,"Bytes":)" + std::to_string(bytes) + "}}";
  };
  const std::vector<Trace> traces =
      read_bytes("[" + on(1, 512) + "," + on(0, 1024) +
                 R"(,{"name":"[OutOfMemory]","ts":2,"args":{"Bytes":9}})"
                 R"(,{"name":"[OutOfMemory]","ts":2,"args":{"Device Type":1,"Device Id":1,"Bytes":4096}}])");
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].name, "file@cuda:0");
  EXPECT_EQ(traces[0].facts.peak_requested_bytes, 1024u);
  EXPECT_EQ(traces[1].facts.peak_requested_bytes, 512u + 4096u) << "the request that failed is attempted in a replay";
  EXPECT_EQ(traces[1].ooms.size(), 1u);
  EXPECT_EQ(traces[1].facts.end_live_bytes, 512u);
  EXPECT_NE(
      traces[1].notes.back().find("1 request ran out of memory on a device without history here, and is left out"),
      std::string::npos);
}

TEST(ChromeReader, SaysInItsOwnWordsWhatIsNoJson) {
  EXPECT_EQ(refusal_of(R"([{"name":"[memory]","ts":1e999}])"),
            "file: byte 29: invalid JSON: number overflow parsing '1e999'");
}

TEST(ChromeReader, NestsDeepWithoutAStack) {
  std::string deep(200000, '[');
  EXPECT_NE(refusal_of(deep).find("invalid JSON"), std::string::npos);
}

}  // namespace
}  // namespace tenon::replay
