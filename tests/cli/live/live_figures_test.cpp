// The line and the page of --watch.
#include <tenon/cli/live/live_figures.h>
#include <tenon/report/text/display_width.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>

namespace tenon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

LiveFigures some() {
  LiveFigures figures{.name = "lenet", .allocator = "caching on simulated:0"};
  figures.now = {.step = 30, .steps = 120, .epoch = 1, .epochs = 3, .loss = 0.5};
  figures.now.phase = "train";
  figures.now.learning_rate = 0.01;
  figures.step_ms = 12.5;
  figures.seconds = 10;
  figures.seconds_left = 30;
  figures.examples_per_second = 12345;
  figures.losses = {2, 1, 0.5};
  LiveDevice device{.name = "simulated:0", .capacity_bytes = 1 << 30, .busy = 0.5};
  device.stats.requested_bytes = {.current = 90 << 20, .peak = 95 << 20};
  device.stats.allocated_bytes = {.current = 100 << 20, .peak = 100 << 20};
  device.stats.reserved_bytes = {.current = 200 << 20, .peak = 200 << 20};
  device.stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)] = {.current = 1 << 20,
                                                                                       .peak = 64 << 20};
  device.stats.device_allocations = 7;
  figures.devices = {device};
  figures.notes = {"a note"};
  return figures;
}

std::string joined(const std::vector<std::string>& lines) {
  return std::accumulate(lines.begin(), lines.end(), std::string(),
                         [](std::string text, const std::string& line) { return std::move(text) + line + "\n"; });
}

TEST(LiveFigures, FragmentationIsWhatNoBlockHasAndWhatNobodyAskedFor) {
  const LiveDevice device = some().devices[0];
  EXPECT_DOUBLE_EQ(device.external_fragmentation(), 0.5);
  EXPECT_DOUBLE_EQ(device.internal_fragmentation(), 0.1);
  EXPECT_EQ(LiveDevice().external_fragmentation(), 0) << "of nothing";
}

TEST(LiveFigures, ALineHasLossSpeedAndMemory) {
  EXPECT_EQ(live_line(some()),
            "train  epoch 1/3  step 30/120  loss 0.5000  12,345 examples/s  simulated:0: requested 90.0 MiB, reserved "
            "200.0 MiB, fragmentation 50.0 %, busy 50.0 %, 7 device calls; peaks activation 64.0 MiB");
}

TEST(LiveFigures, WhatNobodyKnowsIsLeftOut) {
  LiveFigures figures = some();
  figures.now.loss.reset();
  figures.examples_per_second.reset();
  figures.devices[0].busy.reset();
  figures.devices[0].capacity_bytes = 0;
  const std::string line = live_line(figures), page = joined(live_page(figures, 100, 40, false));
  for (const std::string& text : {line, page})
    EXPECT_THAT(text, AllOf(Not(HasSubstr("loss")), Not(HasSubstr("nan")), Not(HasSubstr("examples/s")),
                            Not(HasSubstr("busy")), Not(HasSubstr(" of 0"))));
}

TEST(LiveFigures, APageShowsEachDeviceAndWhatItsMemoryIsFor) {
  const std::string page = joined(live_page(some(), 100, 40, false));
  EXPECT_THAT(page, AllOf(HasSubstr("lenet   caching on simulated:0"), HasSubstr(" 25 %   10 s, 30 s left"),
                          HasSubstr("loss 0.5000  '._"),
                          HasSubstr("simulated:0  200.0 MiB reserved of 1.00 GiB  busy 50.0 %  7 device calls"),
                          HasSubstr("fragmentation external 50.0 %, internal 10.0 %"), HasSubstr("activation"),
                          HasSubstr("a note")));
  EXPECT_THAT(page, Not(HasSubstr("optimizer_state"))) << "there is none";
}

TEST(LiveFigures, ALossThatIsNotFiniteIsSaid) {
  LiveFigures figures = some();
  figures.now.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(live_line(figures), HasSubstr("loss not finite"));
  EXPECT_THAT(joined(live_page(figures, 100, 40, false)), HasSubstr("loss not finite"));
}

TEST(LiveFigures, EightyColumnsCutNothingOff) {
  LiveFigures figures = some();
  figures.devices[0].name = "cuda:0";
  for (const std::string& line : live_page(figures, 80, 24, true)) EXPECT_THAT(line, Not(HasSubstr("…")));
}

TEST(LiveFigures, WhatAPageHasNoRoomForIsCounted) {
  LiveFigures figures = some();
  for (int i = 0; i < 5; ++i) figures.devices.push_back(figures.devices[0]);
  EXPECT_THAT(live_page(figures, 80, 24, false).back(), testing::MatchesRegex("\\([0-9]+ more lines: .*\\)"));
}

TEST(LiveFigures, ANameOfSeveralLinesIsOne) {
  LiveFigures figures = some();
  figures.name = "two\nlines";
  EXPECT_THAT(live_page(figures, 80, 24, false).front(), HasSubstr("two lines"));
}

TEST(LiveFigures, APageFitsTheScreen) {
  LiveFigures figures = some();
  for (int i = 0; i < 100; ++i) figures.notes.push_back("note " + std::to_string(i) + std::string(300, '.'));
  for (int i = 0; i < 1000; ++i) figures.losses.push_back(i);
  for (const bool unicode : {false, true}) {
    for (const int columns : {20, 40, 80, 200}) {
      for (const int rows : {1, 5, 24, 60}) {
        const std::vector<std::string> page = live_page(figures, columns, rows, unicode);
        EXPECT_LE(page.size(), static_cast<std::size_t>(rows));
        for (const std::string& line : page) EXPECT_LE(display_width(line), static_cast<std::size_t>(columns)) << line;
        if (rows >= 24) {
          EXPECT_THAT(page.back(), HasSubstr("note 99")) << "the latest note stays";
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cli
