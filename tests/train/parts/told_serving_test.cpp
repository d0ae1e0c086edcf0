// What serving tells step by step, how far it says that it is, and whom it serves when: held against a clock that
// counts by hand.
#include "train/experiment_fixture.h"

#include <tenon/train/serve/schedule.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace tenon::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Words = std::vector<std::string>;

class TellsOfRequests final : public ProgressSink {
 public:
  void progress(const Progress& now) override { places.push_back(now); }
  void note(std::string_view) override {}
  void entering(std::string_view what) override { entered.emplace_back(what); }
  void step_begins() override { ++begun; }
  void beginning() override { ++beginnings; }
  void figures(const ExperimentResult& part) override { shown.push_back(part.steps); }
  bool is_stopping() const override { return ++asked == stops_at; }

  std::vector<Progress> places;
  std::vector<std::string> entered;
  std::vector<std::int64_t> shown;
  int begun = 0, beginnings = 0, stops_at = 0;
  mutable int asked = 0;
};

class ToldServing : public Experiment {
 protected:
  ExperimentConfig config_of(const Words& more) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"model.name=\"gpt\"",    "model.hidden=8",     "model.layers=1",     "model.heads=2",
                         "model.context=32",      "train.threads=1",    "serve.requests=3",   "serve.arrivals=1e6",
                         "serve.prompt_min=2",    "serve.prompt_max=4", "serve.output_min=2", "serve.output_max=2",
                         "serve.cache=\"paged\"", "serve.page=4"};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  ExperimentResult served(TellsOfRequests& told, const Words& more) {
    const ExperimentConfig config = config_of(more);
    install(config);
    ExperimentResult result = run_experiment(config, told);
    figures = {result.figures.begin(), result.figures.end()};
    return result;
  }
  ExperimentResult served(const Words& more) {
    TellsOfRequests nobody;
    return served(nobody, more);
  }
  std::map<std::string, double> figures;
};

TEST_F(ToldServing, SaysHowFarItIsByTheRequestsThatWereServed) {
  TellsOfRequests told;
  const ExperimentResult result = served(told, {"serve.most_at_once=1"});
  ASSERT_EQ(told.places.size(), 6U) << "two symbols for each of three";
  std::vector<std::int64_t> steps, done, examples;
  for (const Progress& place : told.places) {
    EXPECT_EQ(place.phase, "serve");
    EXPECT_FALSE(place.loss);
    steps.push_back(place.steps), done.push_back(place.step), examples.push_back(place.examples);
  }
  EXPECT_THAT(done, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(steps, ElementsAre(2, 6, 9, 6, 7, 6)) << "one more, then as fast as until now, then the end";
  EXPECT_THAT(examples, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(told.entered,
              ElementsAre("making the model", "step 1, 0 of 3 requests served", "step 2, 0 of 3 requests served",
                          "step 3, 1 of 3 requests served", "step 4, 1 of 3 requests served",
                          "step 5, 2 of 3 requests served", "step 6, 2 of 3 requests served"));
  EXPECT_EQ(told.begun, 6);
  EXPECT_EQ(told.beginnings, 1);
  EXPECT_THAT(told.shown, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.planned_steps, 6);
  EXPECT_EQ(result.warmup_steps, 0);
  EXPECT_FALSE(result.interrupted);
  EXPECT_GT(result.seconds, 0);
  ASSERT_EQ(result.timeline.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(result.timeline[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_TRUE(std::isnan(result.losses.at(i)));
    EXPECT_EQ(result.step_ms.at(i), told.places[i].step_ms);
    EXPECT_GT(result.step_ms[i], 0);
  }
  EXPECT_GT(result.memory.requested_bytes.peak, 4 * result.parameters);
  EXPECT_EQ(result.parameters, 256 * 8 + 32 * 8 + (8 * 24 + 24 + 64 + 8 + 8 * 32 + 32 + 32 * 8 + 8 + 4 * 8) + 2 * 8);
}

TEST_F(ToldServing, PlansForTheLastThatWillCome) {
  TellsOfRequests told;
  const ExperimentResult result = served(told, {"serve.arrivals=0.01"});
  const auto requests = train::draw_requests(config_of({"serve.arrivals=0.01"}).section("serve"), 256);
  const auto last = static_cast<std::int64_t>(requests.back().arrival);
  ASSERT_GT(last, 10);
  EXPECT_EQ(result.planned_steps, last + 1);
  EXPECT_EQ(told.places.front().steps, last + 1);
  EXPECT_EQ(result.steps, 6) << "time jumps where there is nobody to serve";
  EXPECT_EQ(figures.at("mean_at_once"), 1);
}

TEST_F(ToldServing, EndsBehindTheStepAtWhichItIsStopped) {
  TellsOfRequests told;
  told.stops_at = 3;
  const ExperimentResult result = served(told, {"serve.output_max=9", "serve.output_min=9"});
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(figures.at("served_requests"), 0);
  EXPECT_EQ(figures.at("generated_symbols"), 0);
  EXPECT_EQ(device_state(kCPU).allocator().stats().requested_bytes.current, 0);
}

// With room for all, each step has a symbol for everybody who has come by then.
TEST_F(ToldServing, ServesEachFromItsArrivalOnForAsManyStepsAsItGetsSymbols) {
  for (const std::string arrivals : {"0.3", "2", "40"}) {
    for (const std::int64_t most : {0, 2}) {
      const Words words = {"serve.requests=20",  "serve.arrivals=" + arrivals,
                           "serve.output_min=1", "serve.output_max=12",
                           "serve.seed=5",       fmt::format("serve.most_at_once={}", most)};
      const auto requests = train::draw_requests(config_of(words).section("serve"), 256);
      std::vector<std::int64_t> left;  // symbols of those who run
      std::size_t next = 0, waiting = 0, admitted = 0, most_at_once = 0, sum = 0;
      std::int64_t steps = 0, symbols = 0;
      for (double now = 0; next < requests.size() || waiting > 0 || !left.empty(); now += 1, ++steps) {
        if (left.empty() && waiting == 0) now = std::max(now, requests[next].arrival);
        for (; next < requests.size() && requests[next].arrival <= now; ++next) ++waiting;
        for (; waiting > 0 && (most == 0 || static_cast<std::int64_t>(left.size()) < most); --waiting, ++admitted)
          left.push_back(requests[admitted].output_symbols);
        most_at_once = std::max(most_at_once, left.size());
        sum += left.size();
        for (std::int64_t& each : left) --each, ++symbols;
        std::erase(left, 0);
      }
      const ExperimentResult result = served(words);
      EXPECT_EQ(result.steps, steps) << arrivals << " a step, at most " << most;
      EXPECT_EQ(figures.at("most_at_once"), static_cast<double>(most_at_once));
      EXPECT_NEAR(figures.at("mean_at_once"), static_cast<double>(sum) / static_cast<double>(steps), 1e-12);
      EXPECT_EQ(figures.at("generated_symbols"), static_cast<double>(symbols));
      EXPECT_EQ(figures.at("served_requests"), 20);
      EXPECT_EQ(figures.at("given_up"), 0);
    }
  }
}

// A request that fails in a step costs the last of them its place, and nobody else comes in before one has left.
TEST_F(ToldServing, OutOfMemoryTheLastOneWaitsAgainAndGetsTheSameSymbols) {
  const Words four = {"serve.requests=4", "serve.output_min=5", "serve.output_max=5"};
  served(four);
  const double hash = figures.at("tokens_hash");
  EXPECT_EQ(figures.at("most_at_once"), 4);
  int recovered = 0;
  for (const int nth : {2, 4, 5, 7}) {
    Words words = four;
    words.insert(words.end(), {"allocator.name=\"direct\"", "allocator.layers=[\"inject\"]",
                               fmt::format("allocator.inject.nth={}", nth), "allocator.inject.purpose=\"kv_cache\""});
    const ExperimentResult result = served(words);
    EXPECT_EQ(figures.at("served_requests"), 4) << nth;
    EXPECT_EQ(figures.at("given_up"), result.oom_recoveries) << nth;
    EXPECT_EQ(figures.at("tokens_hash"), hash) << nth;
    recovered += result.oom_recoveries > 0 ? 1 : 0;
  }
  EXPECT_GE(recovered, 3);
}

TEST_F(ToldServing, OneAloneThatDoesNotFitEndsTheRun) {
  EXPECT_THROW(served({"serve.requests=1", "allocator.name=\"direct\"", "allocator.layers=[\"inject\"]",
                       "allocator.inject.nth=1", "allocator.inject.purpose=\"kv_cache\""}),
               OutOfMemory);
}

TEST_F(ToldServing, OnAddressesAloneThereAreNoSymbolsToCompare) {
  served({"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""});
  EXPECT_FALSE(figures.contains("tokens_hash"));
  EXPECT_EQ(figures.at("served_requests"), 3);
}

TEST_F(ToldServing, TakesTheThreadsAndThePrecisionOfTheRun) {
  served({"train.threads=2"});
  EXPECT_EQ(device_state(kCPU).driver().threads(), 2);
  served({"serve.requests=1"});
  const double in_float32 = figures.at("kv_peak_bytes");
  served({"serve.requests=1", "train.precision=\"bfloat16\""});
  EXPECT_EQ(figures.at("kv_peak_bytes"), in_float32 / 2);
}

TEST_F(ToldServing, SaysWhoseTheMemoryIsIfItIsAskedTo) {
  EXPECT_FALSE(served({}).attribution);
  const ExperimentResult result = served({"report.attribution=true"});
  ASSERT_TRUE(result.attribution);
  EXPECT_EQ(result.attribution->disagreement, "");
  EXPECT_EQ(result.attribution->checks, static_cast<std::uint64_t>(result.steps)) << "behind each step";
  EXPECT_TRUE(std::ranges::any_of(result.attribution->peak, [](const auto& row) {
    return row.purpose == Purpose::kParameter && row.module == "body.block0.qkv";
  }));
}

}  // namespace
}  // namespace tenon::test
