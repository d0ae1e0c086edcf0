// The table: PyTorch's columns in PyTorch's order, its times and sizes, what it can be sorted by.
#include "profiler/small_model.h"

#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
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

}  // namespace
}  // namespace tenon::test
