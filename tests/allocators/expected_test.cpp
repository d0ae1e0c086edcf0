// What the real PyTorch 1.13.1 allocator did on recorded histories, held against ours, every row and every figure.
#include "trace_driver.h"

#include <caching/policy.h>
#include <tenon/memory/pytorch_conf.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>

namespace tenon {
namespace {

using nlohmann::json;

std::unique_ptr<Allocator> make_1_13(MemorySource& source, const std::string& conf) {
  Options options(caching::option_schema(false));
  for (const auto& [name, value] : parse_pytorch_conf(conf, PytorchRelease::k1_13).options)
    options.set_text(name, value);
  return caching::make_policy({.source = source, .options = options}, false);
}

TEST(Expected, EveryRowOfTheRealAllocatorIsReproduced) {
  const std::string folder = testing::traces_folder();
  if (folder.empty()) GTEST_SKIP() << "the recorded histories are not beside this checkout; name them in TENON_TRACES";
  std::ifstream file(folder + "/expected/pytorch-1.13.1.json");
  if (!file) GTEST_SKIP() << folder << " has no expected/pytorch-1.13.1.json";
  const json expected = json::parse(file);
  std::map<std::string, testing::Trace> traces;
  std::size_t events = 0, rows = 0;
  double seconds = 0;
  for (const json& row : expected.at("rows")) {
    const std::string name = row.at("trace");
    if (!traces.contains(name)) traces[name] = testing::read_trace(folder + "/" + name);
    const std::string conf = row.at("pytorch_conf");
    const std::size_t capacity = row.at("capacity_bytes").is_null() ? 0 : row.at("capacity_bytes").get<std::size_t>();
    SCOPED_TRACE(name + " with \"" + conf + "\" on " + std::to_string(capacity));
    const testing::Outcome got =
        testing::play(traces[name], capacity, [&](MemorySource& source) { return make_1_13(source, conf); });
    EXPECT_EQ(got.peak_requested_bytes, row.at("peak_requested_bytes").get<std::size_t>());
    EXPECT_EQ(got.peak_allocated_bytes, row.at("peak_allocated_bytes").get<std::int64_t>());
    EXPECT_EQ(got.peak_active_bytes, row.at("peak_active_bytes").get<std::int64_t>());
    EXPECT_EQ(got.peak_reserved_bytes, row.at("peak_reserved_bytes").get<std::size_t>());
    EXPECT_EQ(got.device_allocations, row.at("device_allocations").get<std::size_t>());
    EXPECT_EQ(got.device_frees, row.at("device_frees").get<std::size_t>());
    EXPECT_EQ(got.retries, row.at("retries").get<std::int64_t>());
    EXPECT_EQ(got.ooms, row.at("ooms").get<std::size_t>());
    EXPECT_EQ(got.first_oom_event.has_value(), !row.at("first_oom_event").is_null());
    if (got.first_oom_event && !row.at("first_oom_event").is_null())
      EXPECT_EQ(*got.first_oom_event, row.at("first_oom_event").get<std::size_t>());
    EXPECT_EQ(got.reserved_changes, row.at("reserved_changes").get<std::size_t>());
    EXPECT_EQ(got.reserved_series_fnv1a64, row.at("reserved_series_fnv1a64").get<std::string>());
    events += traces[name].events.size();
    seconds += got.seconds;
    ++rows;
  }
  std::printf("%zu rows, %zu events, %.1f M events/s\n", rows, events, static_cast<double>(events) / seconds / 1e6);
  EXPECT_GT(rows, 0u);
}

}  // namespace
}  // namespace tenon
