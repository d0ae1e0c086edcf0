// `tenon doctor`: what is missing; and with a history, what it would have fitted under.
#include "cli/pinned_segments.h"
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class DoctorVerb : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("pinned.trace", pinned_segments());
  }
};

TEST_F(DoctorVerb, AnEmptyCapacityIsRefusedAsInTune) {
  folder_.write("short.trace", "a 0 512 0\nf 0\n");
  for (const char* verb : {"doctor", "tune"}) {
    const Said said = tenon({verb, "short.trace", "--capacity", ""});
    EXPECT_EQ(said.code, 2) << verb;
    EXPECT_THAT(said.error, HasSubstr("an empty value")) << verb;
  }
}

TEST_F(DoctorVerb, ADeviceOfNoBytesIsRefused) {
  folder_.write("short.trace", "a 0 512 0\nf 0\n");
  const Said said = tenon({"doctor", "short.trace", "--capacity", "0"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("a device of 0 bytes"));
}

TEST_F(DoctorVerb, AloneItSaysWhatIsThereAndWhatIsMissing) {
  const Said said = tenon({"doctor"});
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_THAT(said.out, AllOf(HasSubstr("plugin caching"), HasSubstr("plugin cpu"), HasSubstr("device cuda")));
}

TEST_F(DoctorVerb, NamesTheSettingThatWouldHaveFittedAndTheLinesToPaste) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "420MiB"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("PyTorch's defaults"), HasSubstr("'expandable_segments:True' ("),
                              HasSubstr("would have fitted"), HasSubstr("export PYTORCH_ALLOC_CONF=\""),
                              HasSubstr("export PYTORCH_CUDA_ALLOC_CONF=\"")));
}

TEST_F(DoctorVerb, WhatIsOnIsNotSuggested) {
  const Said said =
      tenon({"doctor", "pinned.trace", "--capacity", "420MiB", "--pytorch-conf", "expandable_segments:True"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("It fits as it is"), Not(HasSubstr("export"))));
}

TEST_F(DoctorVerb, TakesTenonsAllocatorsWhenOneOfThemWasInUse) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "420MiB", "-a", "caching"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("allocator.name=\""), Not(HasSubstr("PYTORCH_ALLOC_CONF"))));
}

TEST_F(DoctorVerb, SaysWhatTenonsOwnWouldSaveAndWhatUsingThemTakes) {
  folder_.write("checkered.trace", checkered());
  const Said said = tenon({"doctor", "checkered.trace", "--capacity", "230MiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("tenon planned"), HasSubstr("Tenon's own that would have fitted:\n"),
                    HasSubstr("\n  tenon plan checkered.trace -o checkered.plan\n"), HasSubstr("name = \"mortise\""),
                    HasSubstr("PyTorch has no such setting"), Not(HasSubstr("/proc/"))));
  const auto json = parse_json(tenon({"doctor", "checkered.trace", "--capacity", "230MiB", "--format", "json"}).out);
  EXPECT_EQ(json["verdict"], "none fits") << "of PyTorch's";
  EXPECT_TRUE(json["recommendation"].is_null());
  bool is_there = false;
  for (const auto& row : json["rows"]) {
    if (row["setting"] != "planned") continue;
    is_there = true;
    EXPECT_EQ(row["kind"], "tenon");
    EXPECT_EQ(row["fits"], "yes");
    EXPECT_EQ(row["set"], "planned:plan=checkered.plan");
  }
  EXPECT_TRUE(is_there);
}

TEST_F(DoctorVerb, OfStandardInputThePlanIsMadeOfAFileThatTheUserNames) {
  folder_.write("checkered.trace", checkered());
  const Said said =
      tenon_in(folder_, {"doctor", "-", "--capacity", "230MiB"}, {}, (folder_.path() / "checkered.trace").string());
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("\n  tenon plan HISTORY -o history.plan\n"), HasSubstr("\n  plan = \"history.plan\"\n")));
}

TEST_F(DoctorVerb, ARowOfTenonsSaysWhatItSavesBesideTheSettingThatFitsWithLeast) {
  folder_.write("checkered.trace", checkered());
  const auto json = parse_json(tenon({"doctor", "checkered.trace", "--format", "json"}).out);
  std::int64_t least = INT64_MAX, mortise = 0, saved = 0;
  for (const auto& row : json["rows"]) {
    if (row["kind"] == "pytorch") least = std::min(least, row["peak_reserved_bytes"].get<std::int64_t>());
    if (row["setting"] == "mortise") {
      mortise = row["peak_reserved_bytes"];
      saved = row["saved_bytes"];
    }
  }
  EXPECT_EQ(saved, least - mortise);
  EXPECT_GT(saved, 0);
  EXPECT_THAT(tenon({"doctor", "checkered.trace"}).out,
              ContainsRegex("Tenon's own that need less than 'expandable_segments:True', which needs least of the "
                            "others:\n(  .*\n)*  mortise: "));
}

TEST_F(DoctorVerb, ASettingOfPytorchStaysTheRecommendationAndTenonsAreToldBesideIt) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "420MiB"});
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("export PYTORCH_ALLOC_CONF=\"expandable_segments:True\""), HasSubstr("tenon mortise")));
  const auto json = parse_json(tenon({"doctor", "pinned.trace", "--capacity", "420MiB", "--format", "json"}).out);
  EXPECT_EQ(json["recommendation"], "expandable_segments:True");
}

TEST_F(DoctorVerb, TriesTheAllocatorsThatAreNamedAsWell) {
  const auto has = [&](const std::string& out, const std::string& setting) {
    const auto json = parse_json(out);
    return std::ranges::any_of(json["rows"], [&](const auto& row) { return row["setting"] == setting; });
  };
  std::vector<std::string> words = {"doctor", "pinned.trace", "--capacity", "420MiB", "--format", "json"};
  const std::string before = tenon(words).out;
  EXPECT_FALSE(has(before, "buddy"));
  EXPECT_FALSE(has(before, "direct")) << "a device call for each request helps nobody";
  words.insert(words.end(), {"--try", "buddy", "--try", "direct"});
  const std::string after = tenon(words).out;
  EXPECT_TRUE(has(after, "buddy"));
  words.insert(words.end(), {"-a", "caching"});
  EXPECT_TRUE(has(tenon(words).out, "buddy")) << "beside an allocator of Tenon's, too";
  EXPECT_EQ(tenon({"doctor", "--try", "buddy"}).code, 2);
}

TEST_F(DoctorVerb, SaysWhenTheLiveBytesAreTooMany) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "100MiB"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("No allocator could have served it"));
}

TEST_F(DoctorVerb, SaysByHowLittleTheLiveBytesAreTooManyAndSendsNobodyToTune) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "314572799"});
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("314572800 bytes were live or asked for at once, on a device of 314572799 bytes"),
                    HasSubstr("A larger device"), Not(HasSubstr("tenon tune"))));
}

TEST_F(DoctorVerb, WithoutACapacityItComparesPeaksAndSaysWhatIsMissing) {
  const Said said = tenon({"doctor", "pinned.trace"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("no --capacity was given"));
}

TEST_F(DoctorVerb, JsonHasARowForEachSetting) {
  const Said said = tenon({"doctor", "pinned.trace", "--capacity", "420MiB", "--format", "json", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto json = parse_json(said.out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["rows"][0]["fits"], "no");
  EXPECT_EQ(json["rows"][0]["in_use"], "yes");
  EXPECT_EQ(json["rows"][1]["fits"], "yes");
}

TEST_F(DoctorVerb, TheJsonOfSeveralDevicesIsOneDocument) {
  const auto event = [](int device, const char* bytes) {
    return R"({"name":"[memory]","ph":"i","ts":1,"args":{"Device Type":1,"Device Id":)" + std::to_string(device) +
           R"(,"Addr":4096,"Bytes":)" + bytes + R"(,"Total Allocated":0}})";
  };
  folder_.write("devices.json", R"({"traceEvents":[)" + event(0, "1024") + "," + event(0, "-1024") + "," +
                                    event(2, "2048") + "," + event(2, "-2048") + "]}");
  const auto json = parse_json(tenon({"doctor", "devices.json", "--capacity", "1MiB", "--format", "json", "-q"}).out);
  ASSERT_EQ(json["traces"].size(), 2u);
  EXPECT_EQ(json["traces"][0]["peak_requested_bytes"], 1024);
  EXPECT_EQ(json["traces"][1]["peak_requested_bytes"], 2048);
  const std::string csv = tenon({"doctor", "devices.json", "--capacity", "1MiB", "--format", "csv", "-q"}).out;
  EXPECT_EQ(csv.find("trace,setting"), 0u) << csv;
  EXPECT_EQ(csv.find("trace,setting", 1), std::string::npos) << "one table, one header";
}

TEST_F(DoctorVerb, JsonHasTheVerdictAndWhatItIsAbout) {
  const auto doctor = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "doctor");
    words.insert(words.end(), {"--format", "json", "--quiet"});
    return parse_json(tenon(words).out);
  };
  const auto given = doctor({"pinned.trace", "--capacity", "420MiB"});
  EXPECT_EQ(given["capacity_bytes"], 420 * kMiB);
  EXPECT_EQ(given["verdict"], "fits with");
  EXPECT_EQ(given["recommendation"], "expandable_segments:True");
  EXPECT_TRUE(given["failed_request"].is_null());
  EXPECT_EQ(doctor({"pinned.trace", "--capacity", "100MiB"})["verdict"], "no allocator");
  EXPECT_EQ(doctor({"pinned.trace", "--capacity", "1GiB"})["verdict"], "fits as it is");
  EXPECT_TRUE(doctor({"pinned.trace"})["capacity_bytes"].is_null());
  tenon({"replay", "pinned.trace", "-a", "caching", "--capacity", "420MiB", "--snapshot", "died.pickle"});
  const auto died = doctor({"died.pickle"});
  EXPECT_EQ(died["failed_request"]["bytes"], 200 * kMiB);
  EXPECT_EQ(died["capacity_bytes"], 420 * kMiB);
  folder_.write("state.trace", "a 0 1048576 0\na 1 1048576 0\n");
  const auto refused = doctor({"state.trace", "--capacity", "1GiB"});
  EXPECT_EQ(refused["verdict"], "unknown");
  EXPECT_THAT(refused["refused"].get<std::string>(), HasSubstr("no setting is recommended"));
}

TEST_F(DoctorVerb, ASnapshotOfAFailureNeedsNoCapacity) {
  // Written by a replay that ran out: the file says what the device had left.
  ASSERT_EQ(
      tenon({"replay", "pinned.trace", "-a", "caching", "--capacity", "420MiB", "--snapshot", "died.pickle"}).code, 0);
  const Said said = tenon({"doctor", "died.pickle"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("Ran out of memory: a request of 200.0 MiB failed"),
                              HasSubstr("of the 420.0 MiB"), HasSubstr("would have fitted")));
}

TEST_F(DoctorVerb, TheFailureIsStillThereAfterAConversion) {
  ASSERT_EQ(
      tenon({"replay", "pinned.trace", "-a", "caching", "--capacity", "420MiB", "--snapshot", "died.pickle"}).code, 0);
  for (const char* file : {"died.trace.gz", "died.tenon", "again.pickle"}) {
    ASSERT_EQ(tenon({"trace", "convert", "died.pickle", file}).code, 0);
    const Said said = tenon({"doctor", file});
    ASSERT_EQ(said.code, 0) << said.error;
    EXPECT_THAT(said.out,
                AllOf(HasSubstr("Ran out of memory: a request of 200.0 MiB failed"), HasSubstr("of the 420.0 MiB")))
        << file;
  }
}

TEST_F(DoctorVerb, TheRequestThatFailedIsReplayed) {
  ASSERT_EQ(
      tenon({"replay", "pinned.trace", "-a", "caching", "--capacity", "420MiB", "--snapshot", "died.pickle"}).code, 0);
  const Said said = tenon({"replay", "died.pickle", "-a", "caching", "--capacity", "420MiB", "--fail-if", "ooms > 0"});
  EXPECT_EQ(said.code, 3) << said.out;
}

TEST_F(DoctorVerb, ASnapshotSaysWhatWasSetAndThatStaysSet) {
  ASSERT_EQ(tenon({"replay", "pinned.trace", "-a", "caching:roundup_power2_divisions=4", "--capacity", "420MiB",
                   "--snapshot", "died.pickle"})
                .code,
            0);
  const Said said = tenon({"doctor", "died.pickle"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("roundup_power2_divisions:4,expandable_segments:True"),
                              Not(HasSubstr("roundup_power2_divisions:8"))));
}

TEST_F(DoctorVerb, AFileThatTuneRefusesGetsNoVerdict) {
  folder_.write("state.trace", "a 0 1048576 0\na 1 1048576 0\n");
  const Said tuned = tenon({"tune", "state.trace", "--capacity", "1GiB", "-q"});
  EXPECT_EQ(tuned.code, 1);
  const Said said = tenon({"doctor", "state.trace", "--capacity", "1GiB"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, AllOf(HasSubstr("Nothing can be said: state.trace"), HasSubstr("unknown"),
                              HasSubstr("torch.cuda.memory._record_memory_history("), Not(HasSubstr("It fits")),
                              Not(HasSubstr("export PYTORCH"))));
  const std::string refusal = tuned.error.substr(0, tuned.error.find('\n')).substr(std::string("tenon: ").size());
  EXPECT_THAT(said.out, HasSubstr(refusal)) << "one judgement";
  EXPECT_THAT(tenon({"doctor", "state.trace", "--capacity", "1MiB"}).out, HasSubstr("No allocator could have served"))
      << "that much is certain";
}

TEST_F(DoctorVerb, AnAllocatorThatGoesWrongIsDisqualifiedAndItsEventNamed) {
  const std::string fixtures = TENON_FIXTURE_DIR;
  for (const std::string& spec :
       {fixtures + "/faulty.so:after=2,how=overlap", fixtures + "/faulty.so:after=2,how=small",
        fixtures + "/faulty.so:after=2,how=throws", fixture("crasher").string() + ":after=2"}) {
    const Said said = tenon({"doctor", "pinned.trace", "-a", spec, "--capacity", "2GiB"});
    EXPECT_EQ(said.code, 1) << spec;
    EXPECT_THAT(said.out,
                AllOf(HasSubstr("failed"), Not(HasSubstr("It fits")), Not(HasSubstr("nothing has to be set"))))
        << spec;
    EXPECT_THAT(said.error, AllOf(HasSubstr("is disqualified: "), HasSubstr("at event "))) << spec;
    const Said viewed = tenon({"view", "pinned.trace", "-a", spec, "-o", "p.html"});
    EXPECT_EQ(viewed.code, 1);
    EXPECT_THAT(viewed.error, AllOf(HasSubstr("is disqualified: "), HasSubstr("at event "))) << spec;
  }
  const Said said = tenon({"doctor", "pinned.trace", "-a", fixtures + "/faulty.so:after=2,how=overlap", "--capacity",
                           "2GiB", "--format", "json", "-q"});
  const auto json = parse_json(said.out);
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_TRUE(json["recommendation"].is_null());
  EXPECT_EQ(json["rows"][0]["fits"], "failed");
  EXPECT_EQ(json["rows"][0]["failed_event"], 2);
}

TEST_F(DoctorVerb, SettingsThatPytorchsNativeAllocatorDoesNotTakeAreLeftOutAndNamed) {
  ASSERT_EQ(tenon({"replay", "pinned.trace", "-a", "caching:roundup_power2_divisions=4", "--capacity", "420MiB",
                   "--snapshot", "died.pickle"})
                .code,
            0);
  std::string bytes = read_bytes(folder_.path() / "died.pickle");
  // A string of the same length in place of the settings.
  const std::string had = "roundup_power2_divisions:4";
  std::string has = "backend:cudaMallocAsync";
  has += std::string(had.size() - has.size(), ' ');
  std::size_t count = 0;
  for (std::size_t at = bytes.find(had); at != std::string::npos; at = bytes.find(had, at + 1), ++count)
    bytes.replace(at, had.size(), has);
  ASSERT_GT(count, 0u);
  folder_.write("async.pickle", bytes);
  const Said said = tenon({"doctor", "async.pickle", "--capacity", "2GiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("PyTorch's defaults"),
                    HasSubstr("async.pickle was recorded with backend:cudaMallocAsync"), HasSubstr("left out")));
}

TEST_F(DoctorVerb, ARecordingUnderAnAllocatorOfOnesOwnSaysWhatToPass) {
  const std::string head = "# allocator: mine\n# allocator_options: chunk=1MiB\n";
  folder_.write("own.trace", head + pinned_segments());
  const Said said = tenon({"doctor", "own.trace", "--capacity", "420MiB"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("own.trace was recorded under the allocator 'mine'"),
                                HasSubstr("\n  tenon doctor own.trace --capacity 420MiB --allocator "
                                          "PATH/mine.so:chunk=1MiB\n")));
  // With the plugin's path in it the command is whole.
  const std::string plugin = fixture("tiny").string();
  folder_.write("tiny.trace", "# allocator: tiny\n# allocator_plugin: " + plugin + "\n" + pinned_segments());
  const Said exact = tenon({"doctor", "tiny.trace"});
  EXPECT_EQ(exact.code, 2);
  EXPECT_THAT(exact.error, HasSubstr("\n  tenon doctor tiny.trace --allocator " + plugin + "\n"));
  EXPECT_EQ(tenon({"doctor", "tiny.trace", "--allocator", plugin}).code, 0);
}

TEST_F(DoctorVerb, ShowsWhatTheMemoryIsForWhereTheRecordingSaysSo) {
  folder_.write("meant.trace", "#p parameter\na 0 3145728 0\n#p activation\na 1 1048576 0\nf 1\nf 0\n");
  const Said said = tenon({"doctor", "meant.trace"});
  EXPECT_THAT(said.out, HasSubstr("What the 4.00 MiB that lived or were asked for at the peak are for:\n"
                                  "    3.00 MiB   75.0 %  parameter\n"
                                  "    1.00 MiB   25.0 %  activation\n"));
  EXPECT_THAT(said.out, Not(HasSubstr("[no stack]")));
  const auto json = nlohmann::json::parse(tenon({"doctor", "meant.trace", "--format", "json"}).out);
  EXPECT_EQ(json["purposes"]["parameter"], 3145728);
  EXPECT_TRUE(nlohmann::json::parse(tenon({"doctor", "pinned.trace", "--format", "json"}).out)["purposes"].empty());
}

TEST_F(DoctorVerb, OfARunOnesOwnFunctionsAreShownOrTenonsOperatorsAndOnRequestAllFrames) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "snapshot", "--out", "out"}).code, 0);
  const Said said = tenon({"doctor", "out/memory.pickle"});
  EXPECT_THAT(said.out, AllOf(AnyOf(HasSubstr("tenon::nn::LinearImpl::reset (libtenon.so"),
                                    HasSubstr("tenon::nn::LinearImpl::reset (linear.cpp:")),  // has line numbers
                              Not(HasSubstr("AllocatorStack::allocate")), Not(HasSubstr(":0)"))));
  EXPECT_THAT(tenon({"doctor", "out/memory.pickle", "--all-frames"}).out, HasSubstr("AllocatorStack::allocate"));
}

TEST_F(DoctorVerb, MistakesAreUsageErrors) {
  EXPECT_EQ(tenon({"doctor", "missing.trace"}).code, 2);
  EXPECT_EQ(tenon({"doctor", "pinned.trace", "--capacity", "much"}).code, 2);
  EXPECT_EQ(tenon({"doctor", "--capacity", "1GiB"}).code, 2);
  EXPECT_EQ(tenon({"doctor", "--all-frames"}).code, 2);
  EXPECT_EQ(tenon({"doctor", "pinned.trace", "-a", "cachign"}).code, 2);
}

TEST_F(DoctorVerb, SaysWhatGrowsWithEveryStep) {
  std::string trace = "a 0 1048576 0\n";
  for (int step = 0; step < 8; ++step) {
    const int id = 1 + 2 * step;
    trace += "a " + std::to_string(id) + " 65536 0\na " + std::to_string(id + 1) + " 2048 0\nf " + std::to_string(id) +
             "\nm step " + std::to_string(step) + "\n";
  }
  folder_.write("leak.trace", trace);
  const Said said = tenon({"doctor", "leak.trace"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out,
              HasSubstr("With every step 2.00 KiB more live (5 steps, told by marks): a leak, unless it is meant.\n"
                        "    2.00 KiB a step    8.00 KiB in 4 blocks  blocks of 2.00 KiB on stream 0\n"
                        "Replayed without what grows: "));
  const auto json = nlohmann::json::parse(tenon({"doctor", "leak.trace", "--format", "json"}).out);
  EXPECT_EQ(json["growth"]["steps"], 5);
  EXPECT_EQ(json["growth"]["sites"][0]["bytes_per_step"], 2048);
}

TEST_F(DoctorVerb, SaysWhyGrowthCannotBeToldAndWhatToDo) {
  folder_.write("unmarked.trace", "a 0 1048576 0\na 1 65536 0\nf 1\n");
  const Said said = tenon({"doctor", "unmarked.trace"});
  EXPECT_THAT(said.out, HasSubstr("Whether memory grows from step to step cannot be told: no mark names a step, and no "
                                  "requests come equally often, as those of a step do.\n"));
  EXPECT_THAT(said.out, HasSubstr("record_function(f\"step {i}\")"));
  const auto json = nlohmann::json::parse(tenon({"doctor", "unmarked.trace", "--format", "json"}).out);
  EXPECT_THAT(json["growth"]["unknown_because"], HasSubstr("no mark names a step"));
}

}  // namespace
}  // namespace tenon::test
