// What --watch and --metrics are told while a run goes on. The terminal and the server are stand-ins, which keep it.
#include <tenon/cli/live/run_live.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Seen {
  bool has_terminal = false, is_foreground = true, is_closed = false;
  std::vector<std::string> said, kept;
  std::vector<std::vector<std::string>> pages;
  std::vector<LiveFigures> published;
  int taken = 0, erased = 0;
};
Seen seen;

}  // namespace

void say(std::string_view line) { seen.said.emplace_back(line); }
bool is_terminal(int descriptor) { return descriptor == STDERR_FILENO && seen.has_terminal; }
bool is_in_foreground(pid_t) { return seen.is_foreground; }
void OnTerminal::has_terminal() {}
void OnTerminal::gives_terminal_back() {}

WatchScreen::WatchScreen(pid_t) {
  ++seen.taken;
  painter_.pid = 1;
}
WatchScreen::~WatchScreen() = default;
int WatchScreen::columns() const { return 100; }
int WatchScreen::rows() const { return 40; }
void WatchScreen::show(const std::vector<std::string>& page) {
  seen.pages.push_back(page);
  if (seen.is_closed) painter_.pid = -1;
}
void WatchScreen::keep(std::string_view line) { seen.kept.emplace_back(line); }
void WatchScreen::erase() { ++seen.erased; }

struct MetricsServer::Served {};
MetricsServer::MetricsServer(const std::string& address) : url_("http://" + address + "/metrics") {}
MetricsServer::~MetricsServer() = default;
void MetricsServer::publish(const LiveFigures& figures) { seen.published.push_back(figures); }

namespace {

/// What stands behind it: shows progress where nothing is watched.
struct Inner final : ProgressSink {
  void progress(const Progress& now) override { steps.push_back(now.step); }
  void note(std::string_view line) override { notes.emplace_back(line); }
  bool is_stopping() const override { return stops; }
  std::vector<std::int64_t> steps;
  std::vector<std::string> notes;
  bool stops = false;
};

class RunLiveTest : public testing::Test {
 protected:
  void SetUp() override {
    seen = {};
    shutdown();
    ConfigRequest request;
    request.overrides = {"name=\"mine\"", "allocator.name=\"caching\""};
    request.use_environment = false;
    request.sections = training_sections();
    experiment_.emplace(Config::load(request).experiment());
    install(*experiment_);
  }
  void TearDown() override { shutdown(); }

  RunLive& live(LiveSettings settings) {
    auto inner = std::make_unique<Inner>();
    inner_ = inner.get();
    live_ = std::make_unique<RunLive>(*experiment_, std::move(settings), std::move(inner));
    return *live_;
  }
  static Progress step(std::int64_t number, std::optional<double> loss = 0.5, const char* phase = "train") {
    Progress now{.step = number, .steps = 10, .epoch = 1, .epochs = 1, .loss = loss, .step_ms = 10.0 * double(number)};
    now.examples = 32;
    now.phase = phase;
    return now;
  }

  std::optional<ExperimentConfig> experiment_;
  Inner* inner_ = nullptr;
  std::unique_ptr<RunLive> live_;
};

constexpr double kAtOnce = 0, kNever = 1e6;

TEST_F(RunLiveTest, SaysWhereItsPageIsUnlessItIsQuiet) {
  live({.metrics = "1.2.3.4:5", .label = "[1/2] "});
  EXPECT_THAT(seen.said, ElementsAre("[1/2] metrics: http://1.2.3.4:5/metrics"));
  ASSERT_EQ(seen.published.size(), 1U) << "before the first step";
  EXPECT_EQ(seen.published[0].label, "[1/2] ");
  EXPECT_EQ(seen.published[0].name, "mine");
  EXPECT_EQ(seen.published[0].allocator, "caching on cpu:0");
  seen = {};
  live({.metrics = "1.2.3.4:5", .quiet = true});
  EXPECT_THAT(seen.said, IsEmpty());
  EXPECT_EQ(seen.published.size(), 1U);
  seen = {};
  live({});
  EXPECT_THAT(seen.said, IsEmpty());
  EXPECT_THAT(seen.published, IsEmpty());
}

TEST_F(RunLiveTest, CountsExamplesOfStepsAndTakesTheMedianOfTheirTimes) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  run.progress(step(1));
  run.progress(step(2));
  ASSERT_EQ(seen.published.size(), 3U);
  EXPECT_EQ(seen.published[1].examples, 32);
  EXPECT_EQ(seen.published[2].examples, 64);
  EXPECT_EQ(seen.published[2].step_ms, 20);
  run.progress(step(2, {}, "test"));
  EXPECT_EQ(seen.published.back().examples, 64) << "a test is no step";
  EXPECT_EQ(seen.published.back().step_ms, 20) << "that of the last steps";
  run.progress(step(3, {}, "serve"));
  EXPECT_EQ(seen.published.back().examples, 96);
  EXPECT_EQ(seen.published.back().step_ms, 30);
}

TEST_F(RunLiveTest, TheMedianIsThatOfAllStepsSinceTheLastLook) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kNever});
  for (const std::int64_t number : {1, 2, 3, 9}) run.progress(step(number));
  EXPECT_EQ(seen.published.back().step_ms, 10) << "the first step is looked at, the others are not yet due";
  run.progress(step(10, {}, "tested"));
  EXPECT_EQ(seen.published.back().step_ms, 30) << "of 20, 30 and 90";
  EXPECT_EQ(seen.published.back().examples, 128);
}

TEST_F(RunLiveTest, OnceThereAreTwoStepsItIsKnownHowLongTheOthersTake) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  run.progress(step(2));
  EXPECT_FALSE(seen.published.back().seconds_left);
  EXPECT_FALSE(seen.published.back().examples_per_second);
  run.progress(step(4));
  ASSERT_TRUE(seen.published.back().seconds_left);
  const double left = *seen.published.back().seconds_left, passed = seen.published.back().seconds;
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 3 * passed) << "six steps, where two took no longer than the run";
  ASSERT_TRUE(seen.published.back().examples_per_second);
  EXPECT_GT(*seen.published.back().examples_per_second, 0);
  run.progress(step(10));
  EXPECT_EQ(seen.published.back().seconds_left, 0);
}

TEST_F(RunLiveTest, WithoutAStepBetweenTwoLooksTheSpeedIsTheOneBefore) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  run.progress(step(1));
  run.progress(step(2));
  const auto speed = seen.published.back().examples_per_second;
  run.progress(step(2, {}, "test"));
  EXPECT_EQ(seen.published.back().examples_per_second, speed);
}

TEST_F(RunLiveTest, LossesAreThoseOfTrainingTheLatestOnes) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  for (int number = 1; number <= 513; ++number) run.progress(step(number, number));
  EXPECT_EQ(seen.published.back().losses.size(), 512U);
  EXPECT_EQ(seen.published.back().losses.front(), 2);
  EXPECT_EQ(seen.published.back().losses.back(), 513);
  run.progress(step(513, 7.0, "test"));
  run.progress(step(514, {}));
  EXPECT_EQ(seen.published.back().losses.back(), 513) << "a test has no place in the curve, nor has a step without one";
  EXPECT_EQ(seen.published.back().now.loss, 7) << "the last that was told";
}

TEST_F(RunLiveTest, LooksOnceInAnIntervalAndWhenAllIsDone) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kNever});
  run.progress(step(1));
  run.progress(step(2));
  EXPECT_EQ(seen.published.size(), 2U) << "the beginning and the first step";
  run.progress(step(5, {}, "tested"));
  EXPECT_EQ(seen.published.size(), 2U) << "an epoch is over, and not the last";
  run.progress(step(10));
  EXPECT_EQ(seen.published.size(), 2U) << "its test is to come";
  run.progress(step(10, {}, "tested"));
  EXPECT_EQ(seen.published.size(), 3U);
  EXPECT_EQ(seen.published.back().now.phase, "tested");
  RunLive& serving = live({.metrics = "x", .interval_seconds = kNever});
  serving.progress(step(1, {}, "serve"));
  const std::size_t before = seen.published.size();
  serving.progress(step(5, {}, "serve"));
  EXPECT_EQ(seen.published.size(), before);
  serving.progress(step(10, {}, "serve"));
  EXPECT_EQ(seen.published.size(), before + 1);
}

TEST_F(RunLiveTest, WhileDataAreReadThereIsNothingToShow) {
  RunLive& run = live({.watch = true, .metrics = "x", .interval_seconds = kAtOnce});
  run.progress(step(0, {}, "reading data"));
  EXPECT_EQ(seen.published.size(), 1U);
  EXPECT_EQ(seen.said.size(), 1U);
}

TEST_F(RunLiveTest, TellsEveryDevice) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  run.progress(step(1));
  run.progress(step(2));
  ASSERT_EQ(seen.published.back().devices.size(), 1U);
  EXPECT_EQ(seen.published.back().devices[0].name, "cpu:0");
}

TEST_F(RunLiveTest, OnlyWhereNothingIsWatchedTheOtherOneShowsProgress) {
  live({.metrics = "x"}).progress(step(1));
  EXPECT_THAT(inner_->steps, ElementsAre(1));
  live({.watch = true}).progress(step(1));
  EXPECT_THAT(inner_->steps, IsEmpty());
}

TEST_F(RunLiveTest, WithoutATerminalEachLookIsALineWithItsLabel) {
  RunLive& run = live({.watch = true, .interval_seconds = kAtOnce, .label = "[2/3] "});
  run.progress(step(1));
  EXPECT_THAT(seen.said, ElementsAre(HasSubstr("[2/3] train  epoch 1/1  step 1/10")));
  run.note("a note");
  EXPECT_THAT(inner_->notes, ElementsAre("a note"));
  seen.has_terminal = true, seen.is_foreground = false;
  run.progress(step(2));
  EXPECT_EQ(seen.said.size(), 2U) << "the shell has put it into the background";
  EXPECT_EQ(seen.taken, 0);
}

TEST_F(RunLiveTest, OnAScreenNotesStandThereAndBelowItWhenItGoes) {
  seen.has_terminal = true;
  RunLive& run = live({.watch = true, .interval_seconds = kAtOnce, .label = "[2/3] "});
  run.note("before");
  EXPECT_THAT(inner_->notes, ElementsAre("before"));
  run.progress(step(1));
  run.progress(step(2));
  EXPECT_EQ(seen.taken, 1) << "taken once";
  EXPECT_EQ(seen.pages.size(), 2U);
  EXPECT_THAT(seen.said, IsEmpty());
  run.note("shown");
  EXPECT_THAT(inner_->notes, ElementsAre("before"));
  EXPECT_THAT(seen.kept, ElementsAre("[2/3] shown"));
  run.progress(step(3));
  EXPECT_THAT(testing::PrintToString(seen.pages.back()), HasSubstr("shown"));
  seen.is_closed = true;
  run.progress(step(4));
  run.progress(step(5));
  EXPECT_EQ(seen.said.size(), 1U) << "a terminal that is gone is not taken again";
  run.note("after");
  EXPECT_THAT(inner_->notes, ElementsAre("before", "after"));
  // The inner one goes with it: what it was told then is not seen here.
  live_.reset();
  EXPECT_EQ(seen.erased, 1);
}

TEST_F(RunLiveTest, TheLatestHundredNotesAreShown) {
  RunLive& run = live({.metrics = "x", .interval_seconds = kAtOnce});
  for (int number = 1; number <= 101; ++number) run.note("note " + std::to_string(number));
  run.progress(step(1));
  EXPECT_EQ(seen.published.back().notes.size(), 100U);
  EXPECT_EQ(seen.published.back().notes.front(), "note 2");
  EXPECT_EQ(seen.published.back().notes.back(), "note 101");
}

TEST_F(RunLiveTest, StopsWhereTheOtherOneDoes) {
  RunLive& run = live({});
  EXPECT_FALSE(run.is_stopping());
  inner_->stops = true;
  EXPECT_TRUE(run.is_stopping());
}

}  // namespace
}  // namespace tenon::cli
