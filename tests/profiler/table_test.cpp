// The table: PyTorch's columns in PyTorch's order, its times and sizes, what it can be sorted by.
#include "profiler/small_model.h"
#include "support/expect_error.h"

#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using profiler::AverageList;
using profiler::EventAverage;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Two rows with known figures.
AverageList two_rows() {
  profiler::Recording of;
  of.has_memory = true;
  return {{{.key = "aten::add",
            .count = 2,
            .cpu_time_total = 1500,
            .self_cpu_time_total = 1000,
            .cpu_memory_usage = 2048,
            .self_cpu_memory_usage = 2048},
           {.key = "aten::mm",
            .count = 1,
            .cpu_time_total = 3000,
            .self_cpu_time_total = 3000,
            .cpu_memory_usage = -3 * 1024 * 1024,
            .self_cpu_memory_usage = -3 * 1024 * 1024}},
          of};
}

TEST(Table, IsPyTorchs) {
  EXPECT_EQ(two_rows().table({.sort_by = "self_cpu_time_total"}),
            "-------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  \n"
            "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem  "
            "Self CPU Mem    # of Calls  \n"
            "-------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  \n"
            "     aten::mm        75.00%       3.000ms        75.00%       3.000ms       3.000ms      -3.00 MB  "
            "    -3.00 MB             1  \n"
            "    aten::add        25.00%       1.000ms        37.50%       1.500ms     750.000us       2.00 KB  "
            "     2.00 KB             2  \n"
            "-------------  ------------  ------------  ------------  ------------  ------------  ------------  "
            "------------  ------------  \n"
            "Self CPU time total: 4.000ms\n");
}

TEST(Table, ShowsTimesAndSizesInPyTorchsUnits) {
  EXPECT_EQ(profiler::format_time(1.5), "1.500us");
  EXPECT_EQ(profiler::format_time(1000), "1.000ms");
  EXPECT_EQ(profiler::format_time(2500000), "2.500s");
  EXPECT_EQ(profiler::format_memory(0), "0 B");
  EXPECT_EQ(profiler::format_memory(1023), "1023 B");
  EXPECT_EQ(profiler::format_memory(1536), "1.50 KB");
  EXPECT_EQ(profiler::format_memory(-std::int64_t{5} << 30), "-5.00 GB");
}

TEST(Table, ShowsSoManyRowsAsAreAskedFor) {
  EXPECT_THAT(two_rows().table({.sort_by = "cpu_memory_usage", .row_limit = 1}), HasSubstr("aten::add"));
  EXPECT_EQ(lines_of(two_rows().table({.row_limit = 1})).size(), 6u);
  EXPECT_EQ(lines_of(two_rows().table({.row_limit = -1})).size(), 7u);
}

TEST(Table, CanBeSortedByTheDevicesFiguresUnderTheNameOfTheDevice) {
  EXPECT_NO_THROW(two_rows().table({.sort_by = "self_cuda_memory_usage"}));
  EXPECT_NO_THROW(two_rows().table({.sort_by = "self_device_memory_usage"}));
  EXPECT_NO_THROW(two_rows().table({.sort_by = "cuda_time_total"}));
}

TEST(Table, RefusesWhatItCannotBeSortedByWithWhatItCan) {
  EXPECT_THAT(
      [] { two_rows().table({.sort_by = "self_cpu_tme"}); },
      ::testing::ThrowsMessage<Error>(::testing::AllOf(HasSubstr("'self_cpu_tme'"), HasSubstr("self_cpu_time_total"))));
}

TEST(Table, HasOneLineForALabelOfSeveralAndANameForOneWithout) {
  profiler::Profile profile;
  profile.start();
  { const profiler::record_function label("two\nlines"); }
  { const profiler::record_function label(""); }
  profile.stop();
  const std::string table = profile.key_averages().table();
  EXPECT_NE(table.find("two\\nlines "), std::string::npos) << table;
  EXPECT_NE(table.find("(unnamed) "), std::string::npos) << table;
  EXPECT_NE(profile.key_averages(profiler::GroupBy::kLabel).find("(unnamed)"), nullptr);
}

TEST(Table, CutsALongNameAndSaysSo) {
  profiler::Recording of;
  const AverageList rows({{.key = std::string(80, 'x'), .count = 1}}, of);
  std::string cut(52, 'x');
  cut += "...";
  EXPECT_THAT(rows.table(), HasSubstr(cut));
}

TEST(Table, OfARecordingOfNothingIsEmpty) {
  profiler::Profile profile;
  profile.start();
  profile.stop();
  EXPECT_EQ(profile.key_averages().table(), "");
}

TEST(Table, OfATrainingRunHasTheColumnsThatWereRecorded) {
  SmallTraining training;
  profiler::Profile profile({.record_shapes = true, .profile_memory = true, .with_flops = true});
  profile.start();
  training.step();
  profile.stop();
  const std::string table = profile.key_averages(profiler::GroupBy::kShape).table({.sort_by = "self_cpu_memory_usage"});
  for (const char* column : {"Self CPU %", "CPU total", "CPU time avg", "Self CPU Mem", "# of Calls", "Input Shapes",
                             "FLOPs", "aten::linear", "[[5, 8], [16, 8], [16]]"})
    EXPECT_THAT(table, HasSubstr(column));
}

TEST(Table, AUnitBeginsWithOneOfIt) {
  EXPECT_EQ(profiler::format_memory(1024), "1.00 KB");
  EXPECT_EQ(profiler::format_memory(std::int64_t{1} << 20), "1.00 MB");
  EXPECT_EQ(profiler::format_memory(std::int64_t{1} << 30), "1.00 GB");
}

TEST(Table, ASharesWholeIsAnyTimeButNone) {
  const profiler::Recording of;
  const auto shown = [&](double us) {
    return AverageList({{.key = "x", .count = 1, .cpu_time_total = us, .self_cpu_time_total = us}}, of).table();
  };
  EXPECT_THAT(shown(1), HasSubstr("100.00%"));
  EXPECT_THAT(shown(0), HasSubstr(" --  "));
}

TEST(Table, HasTheFramesOfACallBelowEachOtherTheEndOfALongOneAlone) {
  const profiler::Recording of;
  const AverageList rows({{.key = "aten::add", .count = 1, .stack = {"first", "second", "a/long/way/to/third"}}}, of);
  const std::vector<std::string> lines = lines_of(rows.table({.max_src_column_width = 15}));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_THAT(lines[1], HasSubstr("  Source Location  "));
  EXPECT_THAT(lines[3], HasSubstr("  first            "));
  EXPECT_THAT(lines[4], ::testing::MatchesRegex(" +second +"));
  EXPECT_THAT(lines[5], ::testing::MatchesRegex(" +\\.\\.\\.way/to/third +"));
  EXPECT_EQ(lines_of(AverageList({{.key = "x", .count = 1, .stack = std::vector<std::string>(9, "frame")}}, of).table())
                .size(),
            10u)
      << "five frames of nine";
  EXPECT_THAT(lines_of(rows.table({.max_src_column_width = 2}))[5], HasSubstr("  rd "))
      << "no room for dots: the end alone, as in PyTorch";
}

TEST(Table, RefusesANumberOfRowsBelowAll) {
  const profiler::Recording of;
  const AverageList rows({{.key = "aten::add", .count = 1}, {.key = "aten::mul", .count = 1}}, of);
  expect_error([&] { rows.table({.row_limit = -5}); }, "row_limit = -5 is no number of rows");
  EXPECT_THAT(rows.table({.row_limit = -1}), HasSubstr("aten::mul"));
}

TEST(Table, CountsOperationsInTheUnitOfTheSmallestRow) {
  profiler::Recording of;
  of.has_flops = true;
  const auto table = [&](double least) {
    return AverageList({{.key = "least", .count = 1, .flops = least},
                        {.key = "none", .count = 1},
                        {.key = "most", .count = 1, .flops = least * 5000}},
                       of)
        .table();
  };
  EXPECT_THAT(table(2), ::testing::AllOf(HasSubstr("Total FLOPs"), HasSubstr("   2.000  "), HasSubstr("10000.000  ")));
  EXPECT_THAT(table(3e6), ::testing::AllOf(HasSubstr("Total MFLOPs"), HasSubstr("   3.000  "), HasSubstr("15000.000  "),
                                           HasSubstr("--  ")));
}

/// A row for each key, whose figure is the largest there.
AverageList rows_by_key() {
  std::vector<EventAverage> rows(12);
  const std::vector<std::string> keys = profiler::sort_keys();
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].key = "most " + keys.at(i), rows[i].count = 10;
  rows[0].count = 1, rows[0].cpu_time_total = 900;
  rows[1].cpu_time_total = 1000;
  rows[2].self_cpu_time_total = 1;
  rows[3].count = 1, rows[3].device_time_total = 900;
  rows[4].device_time_total = 1000;
  rows[5].self_device_time_total = 1;
  rows[6].cpu_memory_usage = 1;
  rows[7].self_cpu_memory_usage = 1;
  rows[8].device_memory_usage = 1;
  rows[9].self_device_memory_usage = 1;
  rows[10].count = 11;
  rows[11].flops = 1;
  return {rows, {}};
}

std::string first_row(const AverageList& rows, const std::string& key) {
  return lines_of(rows.table({.sort_by = key, .row_limit = 1})).at(3);
}

TEST(Table, IsSortedByEachKeyAndByEachWordAsByTheKeyThatItStandsFor) {
  const AverageList rows = rows_by_key();
  for (const std::string& key : profiler::sort_keys())
    EXPECT_THAT(first_row(rows, key), HasSubstr("most " + key + "  "));
  const std::vector<std::pair<std::string, std::string>> words = {
      {"self_cpu_time", "self_cpu_time_total"},         {"self_device_time", "self_device_time_total"},
      {"self_cuda_time", "self_device_time_total"},     {"cpu_memory", "cpu_memory_usage"},
      {"device_memory", "device_memory_usage"},         {"cuda_memory", "device_memory_usage"},
      {"self_cpu_memory", "self_cpu_memory_usage"},     {"self_device_memory", "self_device_memory_usage"},
      {"self_cuda_memory", "self_device_memory_usage"}, {"cuda_time", "device_time"},
      {"cuda_time_total", "device_time_total"},         {"xpu_time", "device_time"},
      {"simulated_time_total", "device_time_total"},    {"self_cuda_memory_usage", "self_device_memory_usage"}};
  for (const auto& [word, key] : words) EXPECT_THAT(first_row(rows, word), HasSubstr("most " + key + "  ")) << word;
  for (const std::string& word : profiler::sort_words()) EXPECT_NO_THROW(rows.table({.sort_by = word})) << word;
  EXPECT_THAT(profiler::sort_words(), ::testing::IsSupersetOf({"self_cuda_time_total", "cuda_memory", "flops"}));
}

TEST(Table, HasTheColumnsOfADeviceAndEndsWithItsTimeAndByWhomItWasTaken) {
  profiler::Recording of;
  of.has_memory = true;
  of.device_kind = "CUDA";
  of.why_not_traced = "nobody may";
  const AverageList rows({{.key = "aten::mm",
                           .count = 2,
                           .cpu_time_total = 400,
                           .self_cpu_time_total = 300,
                           .device_time_total = 5000,
                           .self_device_time_total = 3000,
                           .cpu_memory_usage = 1,
                           .self_cpu_memory_usage = 2,
                           .device_memory_usage = 3,
                           .self_device_memory_usage = 4,
                           .input_shapes = "[[2, 3]]"},
                          {.key = "aten::add", .count = 1, .self_cpu_time_total = 100, .self_device_time_total = 1000}},
                         of);
  const std::vector<std::string> lines = lines_of(rows.table({.header = "what ran"}));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[0], std::string(lines[2].size() - 2, '='));
  EXPECT_EQ(lines[1], "what ran");
  const auto words = [](const std::string& line) {
    std::istringstream stream(line);
    std::string all;
    for (std::string word; stream >> word;) all += (all.empty() ? "" : " ") + word;
    return all;
  };
  EXPECT_EQ(
      words(lines[3]),
      "Name Self CPU % Self CPU CPU total % CPU total CPU time avg Self CUDA Self CUDA % CUDA total CUDA time avg "
      "CPU Mem Self CPU Mem CUDA Mem Self CUDA Mem # of Calls Input Shapes");
  EXPECT_EQ(words(lines[5]),
            "aten::mm 75.00% 300.000us 100.00% 400.000us 200.000us 3.000ms 75.00% 5.000ms 2.500ms 1 B 2 B 3 B 4 B 2 "
            "[[2, 3]]");
  EXPECT_EQ(lines[8], "Self CPU time total: 400.000us");
  EXPECT_EQ(lines[9], "Self CUDA time total: 4.000ms");
  EXPECT_EQ(lines[10], "CUDA times are those of events around kernels; the device itself was not asked: nobody may");
}

TEST(Table, ShowsADevicesTimeHoweverShort) {
  profiler::Recording of;
  of.device_kind = "CUDA";
  EXPECT_THAT(AverageList({{.key = "x", .count = 1, .self_device_time_total = 0.25}}, of).table(),
              HasSubstr("Self CUDA time total: 0.250us"));
  EXPECT_THAT(AverageList({{.key = "x", .count = 1}}, of).table(), ::testing::Not(HasSubstr("CUDA")));
}

}  // namespace
}  // namespace tenon::test
