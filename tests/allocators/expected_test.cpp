// What the real allocators of PyTorch 1.13.1 and 2.15.0 did on recorded histories, held against ours, every row and
// every figure.
#include "support/recorded_histories.h"
#include "trace_driver.h"

#include <caching/caching_allocator.h>
#include <tenon/memory/pytorch/conf.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>

namespace tenon {
namespace {

using nlohmann::json;

/// What a configuration string means to a release of PyTorch.
test::MakeAllocator maker(const std::string& text, PytorchRelease release) {
  const PytorchConf conf = parse_pytorch_conf(text, release);
  const bool expandable = conf.allocator == kExpandableAllocator;
  Options options(caching::option_schema(expandable));
  for (const auto& [name, value] : conf.options) options.set_text(name, value);
  return [options, expandable](MemorySource& source) {
    return caching::make_allocator({.source = source, .options = options}, expandable);
  };
}

/// Plays every row of an expectations file on the histories of `folder`.
void expect_rows(const std::string& expected_file, const std::string& folder, PytorchRelease release) {
  std::ifstream file(expected_file);
  ASSERT_TRUE(file) << expected_file;
  const json expected = json::parse(file);
  std::map<std::string, test::Trace> traces;
  for (const json& row : expected.at("rows")) {
    const std::string name = row.at("trace");
    if (!traces.contains(name)) traces[name] = test::read_trace(folder + "/" + name);
    const std::string conf = row.at("pytorch_conf");
    const std::size_t capacity = row.at("capacity_bytes").is_null() ? 0 : row.at("capacity_bytes").get<std::size_t>();
    SCOPED_TRACE(name + " with \"" + conf + "\" on " + std::to_string(capacity));
    const test::Outcome got = test::play(traces[name], capacity, maker(conf, release));
    const json figures = {{"peak_requested_bytes", got.peak_requested_bytes},
                          {"peak_allocated_bytes", got.peak_allocated_bytes},
                          {"peak_active_bytes", got.peak_active_bytes},
                          {"peak_reserved_bytes", got.peak_reserved_bytes},
                          {"device_allocations", got.device_allocations},
                          {"device_frees", got.device_frees},
                          {"retries", got.retries},
                          {"ooms", got.ooms},
                          {"first_oom_event", got.first_oom_event ? json(*got.first_oom_event) : json(nullptr)},
                          {"reserved_changes", got.reserved_changes},
                          {"reserved_series_fnv1a64", got.reserved_series_fnv1a64},
                          {"placement_hash", got.placement_hash},
                          {"end_reserved_bytes", got.end_reserved_bytes}};
    // The files of 1.13.1 have no placement.
    for (const auto& [key, value] : figures.items()) {
      if (row.contains(key)) {
        EXPECT_EQ(value, row.at(key)) << key;
      }
    }
  }
  EXPECT_GT(expected.at("rows").size(), 0u);
}

TEST(Expected, TheHistoriesOfTheExamplesAreReproduced) {
  const std::string source = TENON_SOURCE_DIR;
  expect_rows(source + "/tests/allocators/expected_of_examples.json", source + "/examples/traces",
              PytorchRelease::k1_13);
}

TEST(Expected, TheHistoriesOfTheExamplesAreReproducedAsPytorch215DecidesThem) {
  const std::string source = TENON_SOURCE_DIR;
  expect_rows(source + "/tests/allocators/expected_of_examples_2_15.json", source + "/examples/traces",
              PytorchRelease::kCurrent);
}

TEST(Expected, EveryRowOfTheRealAllocatorIsReproduced) {
  TENON_NEEDS_RECORDED("expected/pytorch-1.13.1.json");
  const std::string folder = test::recorded_histories().string();
  expect_rows(folder + "/expected/pytorch-1.13.1.json", folder, PytorchRelease::k1_13);
}

TEST(Expected, EveryRowOfTheRealAllocatorOf215IsReproduced) {
  TENON_NEEDS_RECORDED("expected/pytorch-2.15.0.json");
  const std::string folder = test::recorded_histories().string();
  expect_rows(folder + "/expected/pytorch-2.15.0.json", folder, PytorchRelease::kCurrent);
}

TEST(Expected, EveryRowUnderTheKeysOf215IsReproduced) {
  TENON_NEEDS_RECORDED("expected/pytorch-2.15.0-new-keys.json");
  const std::string folder = test::recorded_histories().string();
  expect_rows(folder + "/expected/pytorch-2.15.0-new-keys.json", folder, PytorchRelease::kCurrent);
}

// The histories above have one stream and a flush only under pressure. Here the invariants are checked after every
// event.
TEST(Expected, InvariantsHoldAfterEveryEventOfARealHistory) {
  test::Trace trace = test::read_trace(TENON_SOURCE_DIR "/examples/traces/gpt2_adam.trace.gz");
  trace.events.resize(2000);
  for (const bool expandable : {false, true}) {
    const AllocatorInfo info{.name = "caching", .options = caching::option_schema(expandable)};
    const Options options(info.options);
    test::play(
        trace, 2 * GiB,
        [&](MemorySource& source) {
          return caching::make_allocator({.source = source, .options = options}, expandable);
        },
        [](Allocator& policy) { policy.check_invariants(); });
  }
}

}  // namespace
}  // namespace tenon
