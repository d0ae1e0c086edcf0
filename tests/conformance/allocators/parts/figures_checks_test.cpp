// The checks of what is counted: every figure that a policy gives is held against the ledger beside it.
#include "conformance/allocators/parts/keeper.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using test::failed;
using test::Habits;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

/// Without the histories, which stop at the first finding.
const KitOptions kPlotAlone{.histories = 0};

/// Counts as the host does, but for this.
Habits counts_but(const std::function<void(PolicyStats&)>& change) {
  return {.report = [change](PolicyStats& stats, std::size_t) { change(stats); }, .counts = true};
}

TEST(FiguresChecks, PassWhatCountsAsTheHostDoes) {
  EXPECT_EQ(failed("counts", {.counts = true}), "");
  EXPECT_EQ(failed("reports_truly", {.counts = true}), "");
}

TEST(FiguresChecks, EveryFigureOfAPolicyIsHeldAgainstTheLedger) {
  const std::vector<std::pair<const char*, PoolStats PolicyStats::*>> stats = {
      {"allocation", &PolicyStats::allocation},
      {"allocated_bytes", &PolicyStats::allocated_bytes},
      {"requested_bytes", &PolicyStats::requested_bytes},
      {"reserved_bytes", &PolicyStats::reserved_bytes}};
  const std::vector<std::pair<const char*, std::int64_t Stat::*>> figures = {
      {"current", &Stat::current}, {"peak", &Stat::peak}, {"allocated", &Stat::allocated}, {"freed", &Stat::freed}};
  for (const auto& [stat_name, stat] : stats) {
    for (const auto& [name, figure] : figures) {
      const auto one_more =
          counts_but([&, stat = stat, figure = figure](PolicyStats& own) { ++((own.*stat)[0].*figure); });
      EXPECT_THAT(failed("counts", one_more, kPlotAlone),
                  ContainsRegex("^the policy reports " + std::string(stat_name) + ".all." + name +
                                " as [0-9]+, the ledger beside it says [0-9]+$"));
    }
  }
}

TEST(FiguresChecks, AStatIsNoLessThanNothingNoMoreThanItsPeakAndTheDifferenceOfItsSums) {
  const std::vector<std::pair<std::string, PoolStats PolicyStats::*>> stats = {
      {"allocation", &PolicyStats::allocation},
      {"segment", &PolicyStats::segment},
      {"active_bytes", &PolicyStats::active_bytes},
      {"reserved_bytes", &PolicyStats::reserved_bytes},
      {"inactive_split_bytes", &PolicyStats::inactive_split_bytes}};
  for (const auto& [name, stat] : stats) {
    const auto with = [&, stat = stat](const Stat& odd) {
      return failed("reports_truly", counts_but([=](PolicyStats& own) { (own.*stat)[0] = odd; }), kPlotAlone);
    };
    EXPECT_EQ(with({.current = -1, .peak = 0, .allocated = 0, .freed = 1}),
              "report() gives " + name + ".current as -1");
    EXPECT_EQ(with({.current = 5, .peak = 4, .allocated = 5, .freed = 0}),
              "report() gives " + name + ".peak as 4, below its current 5");
    EXPECT_EQ(with({.current = 5, .peak = 5, .allocated = 9, .freed = 1}),
              "report() gives " + name + " as 9 allocated, 1 freed and 5 current");
    EXPECT_EQ(with({.current = 5, .peak = 5, .allocated = 9, .freed = 4}), "");
  }
  EXPECT_EQ(failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t) { stats.segment[0].current = -1; }},
                   kPlotAlone),
            "")
      << "of a policy without pools they are nobody's";
}

TEST(FiguresChecks, AnEmptyCacheIsReportedAsOne) {
  const auto reports = [](std::size_t PolicyStats::*figure) {
    return Habits{.report = [=](PolicyStats& stats, std::size_t kept) { stats.*figure = kept == 0 ? 512 : 0; }};
  };
  EXPECT_EQ(failed("reports_truly", reports(&PolicyStats::cached_bytes), kPlotAlone),
            "everything went back to the device, and report() gives cached_bytes as 512, largest_free_bytes as 0");
  EXPECT_EQ(failed("reports_truly",
                   {.report =
                        [](PolicyStats& stats, std::size_t kept) {
                          stats.largest_free_bytes = kept == 0 ? 512 : 0;
                          stats.cached_bytes = 0;
                        }},
                   kPlotAlone),
            "everything went back to the device, and report() gives cached_bytes as 0, largest_free_bytes as 512");
}

TEST(FiguresChecks, ALargestFreeBlockCanBeHadWithoutTheDevice) {
  const auto reports = [](std::size_t bytes) {
    return Habits{.report = [=](PolicyStats& stats, std::size_t kept) {
      if (kept != 0) stats.largest_free_bytes = bytes;
    }};
  };
  // What the plot frees first.
  EXPECT_EQ(failed("reports_truly", reports(std::size_t{900} << 14), kPlotAlone), "");
  EXPECT_EQ(failed("reports_truly", reports(900 * 7), kPlotAlone),
            "report() gives largest_free_bytes as 6300, and a request for as much went to the device");
}

TEST(FiguresChecks, RetriesMayBeReportedWhereTheDeviceGotMemoryBackAlone) {
  const auto three_retries = [](PolicyStats& stats, std::size_t) { stats.retries = 3; };
  EXPECT_THAT(failed("reports_truly", {.report = three_retries}, kPlotAlone),
              HasSubstr("the device refused nothing and got nothing back; report() gives retries as 3"));
  EXPECT_EQ(failed("reports_truly", {.report = three_retries, .keeps_nothing = true}, kPlotAlone), "");
}

TEST(FiguresChecks, ARefusedRequestThatWasServedAfterAllIsARetry) {
  EXPECT_EQ(failed("reports_truly", counts_but([](PolicyStats& stats) { stats.retries = 0; }), kPlotAlone),
            "a request of 60 MiB was refused by the device, and served once cached segments had gone back; report() "
            "gives retries as 0, as before");
  Habits refuses = counts_but([](PolicyStats& stats) { stats.retries = 0; });
  refuses.refused = [](const Request& request) {
    if (request.bytes == 60 * MiB) throw OutOfMemory({.requested_bytes = request.bytes});
  };
  EXPECT_EQ(failed("reports_truly", refuses, kPlotAlone), "") << "one that fails is for other checks";
}

TEST(FiguresChecks, HistoriesComeFirstAndAreHeldToTheirCauseAlone) {
  const Habits boasts{.report = [](PolicyStats& stats, std::size_t kept) { stats.cached_bytes = kept + 1; }};
  EXPECT_THAT(failed("reports_truly", boasts, {.histories = 1, .history_length = 30}),
              StartsWith("the policy's cached_bytes says "));
  EXPECT_EQ(failed("counts", boasts, {.histories = 1, .history_length = 30}), "");
  const Habits swells{.handed_out = [](Block& block) { block.bytes += std::size_t{1} << 40; }};
  EXPECT_THAT(
      failed("counts", swells, {.histories = 1, .history_length = 30}),
      ContainsRegex("^blocks of [0-9]+ bytes in all are handed out, but only [0-9]+ were taken from the device: "
                    "is Block::bytes the size after rounding\\?"));
}

}  // namespace
}  // namespace tenon::conformance
