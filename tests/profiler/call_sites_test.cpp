// With stacks, rows and folded stacks name the program's own functions, and labels and modules stand where they were
// opened. The functions of this program are outside of namespace tenon, as a user's are.
#include "profiler/small_model.h"
#include "profiler/text_of.h"
#include "support/scratch_folder.h"

#include <tenon/ops/ops.h>
#include <tenon/profiler/profiler.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

namespace call_sites_program {

// Each ends with a statement behind its calls, so that none of them becomes a jump.
[[gnu::noinline]] void leaf(int& calls) {
  tenon::ones({2});
  ++calls;
}

[[gnu::noinline]] void labelled(int& calls) {
  const tenon::profiler::record_function label("epoch");
  leaf(calls);
  ++calls;
}

[[gnu::noinline]] void of_template(auto what, int& calls) {
  what();
  ++calls;
}

[[gnu::noinline]] void step(tenon::test::SmallTraining& training, int& calls) {
  training.step();
  ++calls;
}

}  // namespace call_sites_program

namespace tenon::test {
namespace {

using profiler::GroupBy;
using profiler::Profile;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char kProgram[] = "call_sites_program::";

/// What is done by `work`, as folded stacks without files and lines.
std::string folded(auto&& work, const profiler::Schedule& schedule = nullptr) {
  Profile profile({.profile_memory = true, .with_stack = true, .schedule = schedule});
  profile.start();
  work();
  profile.stop();
  const std::string path = scratch_folder() + "folded.txt";
  profile.export_stacks(path, "self_cpu_memory_usage");
  return std::regex_replace(text_of(path), std::regex(R"([^; ]*/?[^;/ ]*: )"), "");
}

TEST(CallSites, OfFoldedStacksStandAroundALabelOneInsideTheOther) {
  int calls = 0;
  EXPECT_THAT(folded([&] { call_sites_program::labelled(calls); }),
              ContainsRegex("call_sites_program::labelled;epoch;call_sites_program::leaf;aten::ones"));
}

TEST(CallSites, OfFoldedStacksStandInsideTheStepOfASchedule) {
  int calls = 0;
  const std::string lines = folded([&] { call_sites_program::leaf(calls); }, profiler::schedule({.active = 1}));
  EXPECT_THAT(lines, ContainsRegex(";ProfilerStep#0;.*call_sites_program::leaf;aten::ones"));
}

TEST(CallSites, OfFoldedStacksStandAboveModulesAndBackwardNodesThatTheyCalled) {
  SmallTraining training;
  int calls = 0;
  const std::string lines = folded([&] { call_sites_program::step(training, calls); });
  EXPECT_THAT(lines, ContainsRegex("call_sites_program::step;SmallNet;encoder;aten::linear"));
  EXPECT_THAT(lines, ContainsRegex("call_sites_program::step;.*Backward0"));
}

TEST(CallSites, OfRowsAreTheProgramsOwnFunctionsInnermostFirst) {
  int calls = 0;
  Profile profile({.with_stack = true});
  profile.start();
  call_sites_program::labelled(calls);
  call_sites_program::leaf(calls);
  profile.stop();
  std::vector<std::string> callers;
  for (const auto& row : profile.key_averages(GroupBy::kStack)) {
    for (const std::string& frame : row.stack) EXPECT_THAT(frame, Not(HasSubstr(": tenon::"))) << "none of the library";
    if (row.key != "aten::ones") continue;
    ASSERT_GE(row.stack.size(), 2U);
    EXPECT_THAT(row.stack[0], testing::EndsWith(": call_sites_program::leaf")) << "without parameters";
    callers.push_back(row.stack[1].substr(row.stack[1].rfind(": ") + 2));
  }
  EXPECT_EQ(callers.size(), 2U) << "one row for each place";
  EXPECT_THAT(callers, Contains("call_sites_program::labelled"));
  EXPECT_THAT(profile.key_averages(GroupBy::kStack).table(), ContainsRegex("Source Location"));
}

TEST(CallSites, OfLambdasAndTemplatesHaveTheirWholeNames) {
  int calls = 0;
  const std::string lines =
      folded([&] { call_sites_program::of_template([&] { call_sites_program::leaf(calls); }, calls); });
  EXPECT_THAT(lines, HasSubstr("of_template<"));
  EXPECT_THAT(lines, Not(ContainsRegex("\\{lambda;")));
  EXPECT_THAT(lines, HasSubstr(kProgram));
}

TEST(CallSites, AreNotWalkedWhereNobodyAskedForThem) {
  int calls = 0;
  Profile profile;
  profile.start();
  call_sites_program::labelled(calls);
  profile.stop();
  for (const profiler::Event& event : profile.recording().events) EXPECT_TRUE(event.stack.empty()) << event.name;
}

}  // namespace
}  // namespace tenon::test
