// What is said when a run has no memory left: who holds it, by module and call site, what pins the largest hole, and
// what was given back too late.
#include "train/experiment_fixture.h"

#include <tenon/core/units.h>
#include <tenon/memory/watch/attribution.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/tenon.h>
#include <tenon/train/step/run_attribution.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>

namespace tenon::test {
namespace {

using memory::AttributedBytes;
using memory::AttributionReport;
using testing::HasSubstr;

class ToldOfFailure final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
  void attributed(const AttributionReport& at_failure) override { report = at_failure; }
  std::optional<AttributionReport> report;
};

class FailedRun : public Experiment {
 protected:
  AttributionReport failure_of(std::vector<std::string> overrides) {
    shutdown();
    ConfigRequest request;
    request.overrides = std::move(overrides);
    request.overrides.insert(request.overrides.end(), {"report.attribution=true", "device.name=\"simulated:0\"",
                                                       "device.simulated.mode=\"address-only\""});
    request.use_environment = false;
    request.sections = training_sections();
    const ExperimentConfig config = Config::load(request).experiment();
    install(config);
    ToldOfFailure told;
    try {
      run_experiment(config, told);
    } catch (const OutOfMemory&) {  // served requests give room for each other, and may all be served
    }
    EXPECT_TRUE(told.report);
    return told.report.value_or(AttributionReport());
  }

  AttributionReport failed_training(const std::string& allocator, const std::string& more = "report.stacks=true") {
    std::ofstream text(folder / "text");
    for (int i = 0; i < 40000; ++i) text << static_cast<char>(' ' + (i * i / 3 + i / 7) % 95);
    text.close();
    return failure_of({"model.name=\"gpt\"", "model.hidden=128", "model.layers=2", "model.heads=4", "model.context=128",
                       "data.name=\"text\"", "data.path=\"" + (folder / "text").string() + "\"", "train.batch_size=32",
                       "train.optimizer=\"adamw\"", "device.simulated.capacity=\"60MiB\"",
                       "allocator.name=\"" + allocator + "\"", more});
  }
};

TEST_F(FailedRun, NamesHoldersByModuleAndCallSiteAndWhatPinsTheLargestHole) {
  for (const char* allocator : {"caching", "expandable", "mortise"}) {
    const AttributionReport report = failed_training(allocator);
    ASSERT_FALSE(report.live.empty()) << allocator;
    std::size_t sum = 0, with_site = 0;
    for (const AttributedBytes& row : report.live) sum += row.bytes, with_site += row.site.empty() ? 0 : row.bytes;
    EXPECT_EQ(sum, report.live_bytes) << allocator;
    EXPECT_GT(with_site, sum / 2) << allocator;
    EXPECT_THAT(report.live.front().module, HasSubstr("block")) << allocator;
    ASSERT_FALSE(report.pins.empty()) << allocator << ": free bytes of " << report.hole_bytes << " are pinned";
    EXPECT_FALSE(report.pins.front().whose.module.empty()) << allocator;
    EXPECT_FALSE(report.pins.front().whose.site.empty()) << allocator;
    const std::string text = failure_text(report);
    EXPECT_THAT(text, HasSubstr(", at ")) << allocator;
    EXPECT_THAT(text, HasSubstr("What pins the largest hole: ")) << allocator;
    EXPECT_THAT(text, HasSubstr("Nothing was given back too late")) << allocator << ": it failed in its first step";
    EXPECT_THAT(attribution_json(report), HasSubstr("\"site\":")) << allocator;
  }
}

TEST_F(FailedRun, WalksNoStacksWhereNoneAreAskedFor) {
  const AttributionReport report = failed_training("caching", "report.stacks=false");
  for (const AttributedBytes& row : report.live) EXPECT_EQ(row.site, "");
  EXPECT_FALSE(report.live.empty());
}

TEST_F(FailedRun, OfServedRequestsGivesTheirCacheToTheLayersThatItIsOfOrToItself) {
  for (const char* kind : {"contiguous", "growing", "paged"}) {
    const AttributionReport report =
        failure_of({"model.name=\"gpt\"", "model.hidden=64", "model.layers=2", "model.heads=2", "model.context=192",
                    "model.vocabulary=64", "serve.requests=16", std::string("serve.cache=\"") + kind + "\"",
                    "device.simulated.capacity=\"1MiB\"", "allocator.name=\"direct\""});
    std::size_t of_cache = 0;
    for (const AttributedBytes& row : report.live) {
      if (row.purpose != Purpose::kKvCache) continue;
      of_cache += row.bytes;
      EXPECT_THAT(row.module, HasSubstr(std::string(kind) == "paged" ? "kv_cache" : "block")) << kind;
    }
    EXPECT_GT(of_cache, 0U) << kind;
  }
}

TEST(Attribution, ParametersThatWereThereBeforeItHaveTheirModulesOnceTheirOwnersAreNamed) {
  shutdown();
  nn::Sequential net(nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 8));
  AllocatorStack& stack = device_state(kCPU).allocator();
  memory::Attribution attribution(stack, stack.stats());
  { const Tensor x = randn({32, 64}); }
  for (int time = 0; time < 2; ++time) train::name_owners(attribution, *net, nullptr);
  attribution.check(stack.stats(), "named");
  const AttributionReport report = attribution.report();
  EXPECT_EQ(report.disagreement, "");
  for (const auto* rows : {&report.live, &report.peak}) {
    std::size_t of_first = 0, of_all = 0;
    for (const AttributedBytes& row : *rows) {
      of_all += row.bytes;
      if (row.module == "0" && row.purpose == Purpose::kParameter) of_first += row.bytes;
    }
    EXPECT_EQ(of_first, (64U * 128 + 128) * 4);
    EXPECT_EQ(of_all, rows == &report.live ? report.live_bytes : report.peak_bytes);
  }
  net = nullptr;
  attribution.check(stack.stats(), "gone");
  EXPECT_EQ(attribution.report().disagreement, "");
}

TEST(FailureText, OfAHoleBelowTheRequestNamesWhatKeepsItFromTheDevice) {
  AttributionReport report;
  report.live_bytes = 4 * MiB;
  report.failed_bytes = 8 * MiB;
  report.hole_bytes = 3 * MiB;
  report.hole_free_bytes = 2 * MiB;
  report.awaiting_bytes = MiB;
  report.pins = {{MiB, {"block0", "relu", "forward", Purpose::kActivation, MiB, 1, "forward (net.cpp:3)"}}};
  EXPECT_EQ(failure_text(report),
            "Who held the 4.00 MiB that lived when the request failed:\n"
            "What pins the largest hole: 1.00 MiB in 1 block keep a stretch of 3.00 MiB from going back to the device, "
            "2.00 MiB of which are free:\n"
            "    1.00 MiB  block0, activation of relu, forward, at forward (net.cpp:3)\n"
            "Nothing was given back too late: no gradient, activation or workspace of a former step lived on.\n"
            "1.00 MiB were given back, and wait for a stream that still uses them.\n");
}

}  // namespace
}  // namespace tenon::test
