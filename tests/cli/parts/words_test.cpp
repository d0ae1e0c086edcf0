// What the program says of checks, deaths and times: sentences, lines and columns.
#include "support/json.h"

#include <tenon/cli/check_lines.h>
#include <tenon/cli/duration.h>
#include <tenon/cli/gate_sentences.h>
#include <tenon/cli/kit_json.h>
#include <tenon/cli/terminal/without_effect.h>
#include <tenon/cli/watch/death_words.h>
#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

using conformance::CheckResult;
using nlohmann::json;
using testing::HasSubstr;

TEST(ParsedSeconds, HaveAnyOfTheUnitsOrNone) {
  EXPECT_EQ(parse_seconds("--budget", "30"), 30);
  EXPECT_EQ(parse_seconds("--budget", "1.5s"), 1.5);
  EXPECT_EQ(parse_seconds("--budget", "500ms"), 0.5);
  EXPECT_EQ(parse_seconds("--budget", "2m"), 120);
  EXPECT_EQ(parse_seconds("--budget", "2min"), 120);
  EXPECT_EQ(parse_seconds("--budget", "1h"), 3600);
}

TEST(ParsedSeconds, AreSomeAndNotForEver) {
  for (const std::string text : {"", "s", "0", "0s", "-1s", "5d", "5 s", "1h30m", "inf", "nan", "1e400"}) {
    try {
      parse_seconds("--budget", text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()),
                "--budget takes a time, for example 500ms, 30s, 2m or 1h, not \"" + text + "\"");
    }
  }
}

TEST(SaidOfGates, IsALineForEachReason) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(say_trips({{}, {"a is 1", "b is 2"}, {"c is 3"}, {}}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a is 1\nb is 2\nc is 3\n");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(say_trips({{}, {}}));
  EXPECT_FALSE(say_trips({}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SaidOfOptions, ThatChangeNothingIsOneSentence) {
  testing::internal::CaptureStderr();
  say_without_effect({}, "of none");
  say_without_effect({"--capacity"}, "there is no device");
  say_without_effect({"--allocator", "--capacity"}, "there is no device");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tenon: --capacity changes nothing here: there is no device\n"
            "tenon: --allocator and --capacity change nothing here: there is no device\n");
}

TEST(SaidOfDeaths, NamesTheAllocatorItsFileAndTheCall) {
  EXPECT_EQ(titled("allocator 'x'", ""), "allocator 'x'");
  EXPECT_EQ(titled("allocator 'x'", "x.so"), "allocator 'x' (x.so)");
  EXPECT_EQ(hang_sentence("x", "allocate", 2.5, ", in epoch 1"),
            "x did not come back from allocate within 2.5 s (--deadline), in epoch 1");
  EXPECT_EQ(hang_sentence("x", "free", 60, ""), "x did not come back from free within 60 s (--deadline)");
  EXPECT_EQ(crash_sentence("the run", "x", "", "Segmentation fault", ", in step 2"),
            "the run crashed, in step 2, in no call of x: Segmentation fault");
  EXPECT_EQ(crash_sentence("the run", "x", "allocate", "Segmentation fault", ", in step 2"),
            "x crashed in allocate, in step 2: Segmentation fault");
  EXPECT_EQ(exit_sentence("the run", "x", "", 3, ""),
            "the process of the run ended with code 3 before it was done, in no call of x");
  EXPECT_EQ(exit_sentence("the run", "x", "free", 0, ", in step 2"),
            "the process of the run ended with code 0 before it was done, in free of x, in step 2");
  EXPECT_EQ(exit_sentence("the run", "x", "free", -1, ""),
            "the process of the run ended before it was done, in free of x");
}

TEST(SaidOfDeaths, CountsTheStepsThatWereFinished) {
  ExperimentResult result;
  EXPECT_EQ(finished_sentence(result), "no step was finished");
  result.steps = 1;
  result.planned_steps = 8;
  result.memory.reserved_bytes.peak = 3 << 20;
  EXPECT_EQ(finished_sentence(result), "finished: 1 of 8 steps, peak reserved 3.00 MiB");
  result.losses = {2, 0.5};
  EXPECT_EQ(finished_sentence(result), "finished: 1 of 8 steps, loss 0.5000, peak reserved 3.00 MiB");
  result.losses = {std::nan(""), std::nan("")};
  EXPECT_EQ(finished_sentence(result), "finished: 1 of 8 steps, peak reserved 3.00 MiB")
      << "of a device that computes nothing";
}

CheckResult failed() {
  return {.name = "never_overlaps",
          .promise = "two live blocks share no byte",
          .failure = "blocks 1 and 2 overlap\n    a 1\n    a 2"};
}

TEST(CheckLines, AreThoseOfTheReportWhereTheScreenHasNoEnd) {
  CheckResult passed = failed();
  passed.failure = "";
  EXPECT_EQ(lines_of(passed, {}), "  passed  never_overlaps                   two live blocks share no byte\n");
  EXPECT_EQ(lines_of(failed(), {}), failed().line());
}

TEST(CheckLines, GoOnInTheColumnOfRemarksFromAHundredColumnsOn) {
  CheckResult passed{.name = "never_overlaps", .promise = std::string(50, 'a') + " " + std::string(30, 'b')};
  const std::string head = "  passed  never_overlaps                   ";
  EXPECT_EQ(lines_of(passed, {.columns = 100}),
            head + std::string(50, 'a') + "\n" + std::string(43, ' ') + std::string(30, 'b') + "\n");
  EXPECT_EQ(lines_of(passed, {.columns = 200}), head + passed.promise + "\n");
  EXPECT_EQ(lines_of(passed, {.columns = 99}), "  passed  never_overlaps\n") << "a promise that was kept is left out";
}

TEST(CheckLines, OfAFailureOnANarrowScreenStandBelowItsName) {
  EXPECT_EQ(
      lines_of(failed(), {.columns = 60}),
      "  FAILED  never_overlaps\n    two live blocks share no byte\n    blocks 1 and 2 overlap\n    a 1\n    a 2\n");
  CheckResult same = failed();
  same.same_as = "keeps_bytes";
  same.failure = "x";
  EXPECT_EQ(lines_of(same, {.columns = 60}), "  as in   never_overlaps\n    keeps_bytes: x\n");
}

TEST(CheckLines, AreGreenRedOrYellow) {
  const auto colour = [](const CheckResult& check) {
    const std::string line = lines_of(check, {.columns = 0, .has_colour = true});
    const std::size_t state = line.find(check.state());
    EXPECT_EQ(line.substr(0, 2), "  ");
    return line.substr(2, state - 2);
  };
  CheckResult passed = failed(), same = failed();
  passed.failure = "";
  same.same_as = "keeps_bytes";
  EXPECT_EQ(colour(passed), toned("x", Tone::kGood, {.has_colour = true}).substr(0, colour(passed).size()));
  EXPECT_EQ(colour(failed()), toned("x", Tone::kBad, {.has_colour = true}).substr(0, colour(failed()).size()));
  EXPECT_EQ(colour(same), toned("x", Tone::kWarning, {.has_colour = true}).substr(0, colour(same).size()));
  EXPECT_NE(colour(passed), colour(same));
  EXPECT_NE(colour(failed()), colour(same));
}

Table no_rows() { return Table(std::vector<Column>{{"check", "check"}}); }

TEST(KitJson, HasARunForEachSpecWithWhatWasNotRun) {
  Table rows(std::vector<Column>{{"check", "check"}});
  rows.add_row({std::string("never_overlaps")});
  std::vector<KitRun> runs = {{"caching", "caching:x=1", {}}, {"direct", "direct", {}}};
  runs[0].report.seed = 48;
  for (const std::string& name : conformance::check_names()) runs[0].report.checks.push_back({.name = name});
  runs[0].report.speed = conformance::Speed{.pair_ns = 71, .yardstick_ns = 52, .yardstick = "caching"};
  runs[1].report.checks.push_back({.name = conformance::check_names().front()});
  const json document = test::parse_json(kit_json(rows, runs, "", "{}"));
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["rows"].size(), 1U);
  EXPECT_EQ(document["runs"][0],
            test::parse_json(R"({"allocator": "caching", "spec": "caching:x=1", "seed": 48, "passed": true,
      "speed": {"pair_ns": 71.0, "yardstick": "caching", "yardstick_ns": 52.0, "is_slow": false}, "checks_not_run": []})"));
  EXPECT_TRUE(document["runs"][1]["speed"].is_null());
  EXPECT_EQ(document["runs"][1]["passed"], false) << "what was not run did not pass";
  EXPECT_EQ(document["runs"][1]["checks_not_run"].size(), conformance::check_names().size() - 1);
}

TEST(KitJson, AsksForNoMoreThanTheNamesThatWereWanted) {
  const std::string first = conformance::check_names().front();
  std::vector<KitRun> runs = {{"direct", "direct", {}}};
  runs[0].report.checks.push_back({.name = first});
  runs[0].report.speed = conformance::Speed{.pair_ns = 1e7, .yardstick_ns = 0, .yardstick = ""};
  json document = test::parse_json(kit_json(no_rows(), runs, first, "{}"));
  EXPECT_EQ(document["runs"][0]["passed"], true);
  EXPECT_TRUE(document["runs"][0]["speed"]["yardstick"].is_null());
  EXPECT_TRUE(document["runs"][0]["speed"]["yardstick_ns"].is_null());
  runs[0].report.checks[0].failure = "no";
  document = test::parse_json(kit_json(no_rows(), runs, first, "{}"));
  EXPECT_EQ(document["runs"][0]["passed"], false);
  EXPECT_EQ(document["runs"][0]["checks_not_run"].size(), 0U);
}

}  // namespace
}  // namespace tenon::cli
