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
#include <functional>
#include <optional>
#include <string>

namespace tenon::test {
namespace {

using memory::AttributedBytes;
using memory::AttributionReport;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

  /// Of a program of its own, whose last request fails.
  AttributionReport failure_in(const std::function<void(const Device&)>& program) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\"",
                         "device.simulated.capacity=\"64MiB\""};
    request.use_environment = false;
    request.sections = training_sections();
    install(Config::load(request).experiment());
    const Device device("simulated:0");
    ToldOfFailure told;
    train::RunAttribution attribution(device_state(device), told, [](memory::Attribution&) {}, {.last_uses = true});
    EXPECT_THROW(
        {
          program(device);
          empty({1 << 28}, device);
        },
        OutOfMemory);
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
    const std::string text = failure_text(report);
    EXPECT_THAT(text, HasSubstr(", at ")) << allocator;
    if (allocator == std::string("caching")) {  // has a segment for small blocks, with few in it
      ASSERT_FALSE(report.pins.empty()) << "free bytes of " << report.hole_bytes << " are pinned";
      EXPECT_FALSE(report.pins.front().whose.module.empty());
      EXPECT_FALSE(report.pins.front().whose.site.empty());
      EXPECT_THAT(text, HasSubstr("What pins the largest hole: "));
    } else {
      EXPECT_THAT(report.pins, IsEmpty()) << allocator << ": its one segment is full";
      EXPECT_THAT(text, Not(HasSubstr("What pins"))) << allocator;
    }
    EXPECT_THAT(text, HasSubstr("Nothing was given back too late")) << allocator << ": it failed in its first step";
    EXPECT_TRUE(std::ranges::any_of(report.live, [](const AttributedBytes& row) { return row.module == "Gpt"; }))
        << "the model's own parameters stand under its type as users call it";
    EXPECT_THAT(attribution_json(report), HasSubstr("\"site\":")) << allocator;
  }
}

/// So many operators that who waits for them waits for long.
void compute(const Device& device) {
  const Tensor x = ones({8}, device);
  for (int i = 0; i < 40; ++i) x.add(1);
}

const memory::IdleBytes* of_size(const AttributionReport& report, std::size_t bytes) {
  const auto found =
      std::ranges::find(report.idle, bytes, [](const memory::IdleBytes& row) { return row.whose.bytes; });
  return found == report.idle.end() ? nullptr : &*found;
}

TEST_F(FailedRun, NamesATensorThatIsHeldThoughNobodyUsesItAnyMore) {
  const AttributionReport report = failure_in([](const Device& device) {
    const NoGradGuard no_grad;
    scopes::tell_marked("step 1");
    const Tensor held = ones({256, 1024}, device).mul(2);
    const Tensor sum = held.sum();
    compute(device);
    sum.add(1);
    empty({1 << 28}, device);
  });
  ASSERT_EQ(report.idle.size(), 1U);
  const memory::IdleBytes& idle = report.idle.front();
  EXPECT_EQ(idle.whose.bytes, MiB);
  EXPECT_EQ(idle.whose.operator_name, "mul");
  EXPECT_EQ(idle.last_use, "sum");
  EXPECT_GE(idle.operators_ago, 40U);
  EXPECT_FALSE(idle.is_known) << "it is the first step";
  const std::string text = failure_text(report);
  EXPECT_THAT(text, HasSubstr("What was held too long: 1.00 MiB that nothing keeps for backward"));
  EXPECT_THAT(text, HasSubstr("operators before, in sum; the step before had none like it: it may be used again"));
  EXPECT_THAT(text, Not(HasSubstr("Nothing was given back too late")));
  EXPECT_THAT(attribution_json(report), HasSubstr("\"idle\":[{"));
}

TEST_F(FailedRun, DoesNotCallTooLateWhatIsKeptForBackwardUntilBackwardHasUsedIt) {
  for (const bool runs_backward : {false, true}) {
    const AttributionReport report = failure_in([&](const Device& device) {
      scopes::tell_marked("step 1");
      const Tensor x = ones({8, 1024}, TensorOptions(device).requires_grad(true));
      const Tensor hidden = (x.sum(1) * ones({64, 1}, device)).exp();  // keeps its result
      const Tensor loss = hidden.sum();
      if (runs_backward) loss.backward();
      compute(device);
      empty({1 << 28}, device);
    });
    const memory::IdleBytes* hidden = of_size(report, 64 * 8 * 4);
    EXPECT_EQ(hidden != nullptr, runs_backward);
    if (hidden != nullptr) {
      EXPECT_THAT(hidden->last_use, HasSubstr("ExpBackward0"));
    }
  }
}

TEST_F(FailedRun, KnowsOfTheStepBeforeWhatWillBeUsedAgain) {
  for (const bool is_used_again : {false, true}) {
    const AttributionReport report = failure_in([&](const Device& device) {
      const NoGradGuard no_grad;
      for (int step = 1; step <= 2; ++step) {
        scopes::tell_marked("step " + std::to_string(step));
        const Tensor held = ones({256, 1024}, device).mul(2);
        held.sum();
        compute(device);
        if (step == 2) empty({1 << 28}, device);
        if (is_used_again) held.sum();
      }
    });
    const memory::IdleBytes* held = of_size(report, MiB);
    EXPECT_EQ(held != nullptr, !is_used_again);
    if (held != nullptr) {
      EXPECT_TRUE(held->is_known);
    }
  }
}

TEST_F(FailedRun, OfGradientsThatWaitInBackwardSaysNothing) {
  const AttributionReport report = failure_in([](const Device& device) {
    scopes::tell_marked("step 1");
    const Tensor x = ones({256, 1024}, TensorOptions(device).requires_grad(true));
    Tensor way = x.mul(2);
    way.register_hook([device](const Tensor& gradient) {
      empty({1 << 28}, device);
      return gradient;
    });
    for (int i = 0; i < 40; ++i) way = way.mul(1);
    // The gradient of the short way waits for that of the long one.
    const Tensor sum = (way + x.mul(3)).sum();
    sum.backward();
  });
  for (const memory::IdleBytes& idle : report.idle) EXPECT_THAT(idle.whose.operator_name, Not(HasSubstr("Backward")));
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
