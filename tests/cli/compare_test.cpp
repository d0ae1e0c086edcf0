// `tenon compare`: runs, sweeps, replays and benches side by side.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CompareVerb : public Program {
 protected:
  void run(const std::string& out, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run", "exp.toml", "--out", out, "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    const Said said = tenon(words);
    ASSERT_EQ(said.code, 0) << said.error;
  }
  void replay(const std::string& file, const std::vector<std::string>& more) {
    for (const char* name : {"one", "two"}) {
      std::string text;
      for (int i = 0; i < 30; ++i) {
        text += "a " + std::to_string(i) + " " + std::to_string(3000000 + 1000 * i) + " 0\n";
        if (i % 2 == 0) text += "f " + std::to_string(i) + "\n";
      }
      folder_.write(std::string(name) + ".trace", text);
    }
    std::vector<std::string> words = {"replay", "one.trace", "two.trace", "--format", "json", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    folder_.write(file, tenon(words).out);
  }
};

TEST_F(CompareVerb, OfRunsSaysWhatWasSetAndWhatCameOfIt) {
  run("old", {"allocator.name=\"direct\""});
  run("new", {"allocator.name=\"caching\""});
  const Said said = tenon({"compare", "old", "new", "--html", "both.html"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("allocator.name"), HasSubstr("direct"), HasSubstr("peak reserved"),
                              HasSubstr("worse by"), HasSubstr("no verdict: one run each")));
  EXPECT_THAT(said.error, HasSubstr("the losses of b are equal to the last bit to those of a"));
  const std::string page = read_bytes(folder_.path() / "both.html");
  EXPECT_THAT(page, AllOf(HasSubstr("a reserved"), HasSubstr("b reserved"), HasSubstr("Memory by purpose")))
      << "both on one axis";
  EXPECT_THAT(tenon({"compare", "old", "new", "--all", "--format", "csv"}).out,
              AllOf(HasSubstr("run,peak reserved,"), HasSubstr("run,activations,")))
      << "what has one heading has both tables";
}

TEST_F(CompareVerb, SaysHowFarLossesAreApartAndWhetherThatIsRounding) {
  run("a");
  json result = parse_json(read_bytes(folder_.path() / "a/result.json"));
  result["result"]["losses_fnv1a64"] = "0123456789abcdef";
  const auto with = [&](std::size_t step, double factor) {
    json other = result;
    other["result"]["losses"][step] = result["result"]["losses"][step].get<double>() * factor;
    folder_.write("b.json", other.dump());
    return tenon({"compare", "a", "b.json"}).error;
  };
  EXPECT_THAT(with(2, 1 + 4e-7), HasSubstr("the losses of b are those of a but for rounding: at most 4.0e-07 of a loss "
                                           "apart, at step 3"));
  EXPECT_THAT(with(2, 0.5), HasSubstr("the losses of b are other than those of a: up to 50 % apart, at step 3"));
  EXPECT_THAT(with(0, 1.0005), HasSubstr("are other than those of a: up to 0.05 % apart, at step 1"));
}

TEST_F(CompareVerb, ComparesLossesStepByStepWhereARunBeganWithASavedState) {
  run("a");
  const json whole = parse_json(read_bytes(folder_.path() / "a/result.json"));
  json rest = whole;
  rest["result"]["losses_fnv1a64"] = "0123456789abcdef";
  json& losses = rest["result"]["losses"];
  const std::size_t steps = losses.size();
  ASSERT_GT(steps, 2U);
  losses.erase(0);
  rest["result"]["figures"]["resumed_at_step"] = 1.0;
  const auto said_of = [&] {
    folder_.write("b.json", rest.dump());
    return tenon({"compare", "a", "b.json"}).error;
  };
  const std::string of = " in steps 2 to " + std::to_string(steps);
  EXPECT_THAT(said_of(), HasSubstr("the losses of b are equal to those of a" + of));
  losses[1] = losses[1].get<double>() * 0.5;
  EXPECT_THAT(said_of(), HasSubstr("are other than those of a: up to 50 % apart" + of + ", at step 3"));
  rest["result"]["figures"]["resumed_at_step"] = static_cast<double>(steps);
  EXPECT_THAT(said_of(), HasSubstr("are of other steps than those of a"));
}

TEST_F(CompareVerb, GivesNoVerdictOnTheDeviceCallsOfARunThatWasResumed) {
  run("whole");
  json resumed = parse_json(read_bytes(folder_.path() / "whole/result.json"));
  resumed["earlier_seconds"] = 1.5;
  resumed["memory"]["device_allocations"] = resumed["memory"]["device_allocations"].get<int>() + 3;
  folder_.write("resumed.json", resumed.dump());
  const Said said = tenon({"compare", "whole", "resumed.json", "--fail-if", "device_allocations > +1%"});
  EXPECT_EQ(said.code, 3) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("no verdict: a run that was resumed"), Not(HasSubstr("worse"))));
  EXPECT_THAT(said.error, AllOf(HasSubstr("took its memory from the device once more"), HasSubstr("cannot be judged")));
}

TEST_F(CompareVerb, SaysThatAMachineWasBusy) {
  run("quiet");
  json noisy = parse_json(read_bytes(folder_.path() / "quiet/result.json"));
  ASSERT_TRUE(noisy["host"]["load_average"].is_number());
  noisy["host"]["warnings"] = {"the load average was 9.0 on 2 cores: others are busy here"};
  folder_.write("noisy.json", noisy.dump());
  EXPECT_THAT(tenon({"compare", "quiet", "noisy.json"}).error,
              HasSubstr("times of b: a noisy machine: the load average was 9.0"));
}

TEST_F(CompareVerb, CallsWhatIsEqualEqual) {
  replay("one.json", {"-a", "direct", "-a", "caching", "-a", "expandable"});
  const Said said = tenon({"compare", "one.json", "one.json"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("geometric mean"), HasSubstr("equal"))) << said.out;
}

TEST_F(CompareVerb, NamesTheOptionThatDiffersBetweenTwoCells) {
  const Said sweep =
      tenon({"run", "exp.toml", "allocator.name=caching:max_split_size=32MiB,caching:max_split_size=64MiB", "--sweep",
             "--out", "res"});
  ASSERT_EQ(sweep.code, 0) << sweep.error;
  std::vector<std::string> words = {"compare"};
  for (const auto& cell : std::filesystem::directory_iterator(folder_.path() / "res/cells"))
    words.push_back(cell.path().string());
  ASSERT_EQ(words.size(), 3U);
  words.insert(words.end(), {"--format", "json"});
  std::map<std::string, std::set<std::string>> changes;
  const json document = parse_json(tenon(words).out);
  for (const json& change : document["changed"])
    changes[change["setting"]] = {change["a"].get<std::string>(), change["b"].get<std::string>()};
  EXPECT_EQ(changes["allocator.caching.max_split_size"], (std::set<std::string>{"\"32MiB\"", "\"64MiB\""}));
  EXPECT_EQ(changes.size(), 1U) << testing::PrintToString(changes);
}

TEST_F(CompareVerb, NamesAPluginThatWasBuiltAgainBetweenTheRuns) {
  const std::filesystem::path plugin = folder_.path() / "mine.so";
  std::filesystem::copy_file(fixture("crasher"), plugin);
  const std::string name = "allocator.name=\"mine.so:after=1000000\"";
  run("old", {name});
  run("same", {name});
  std::ofstream(plugin, std::ios::app) << "another build";
  run("new", {name});
  const auto changes = [&](const std::string& other) {
    std::map<std::string, std::string> keys;
    const json document = parse_json(tenon({"compare", "old", other, "--format", "json"}).out);
    for (const json& change : document["changed"])
      keys[change["setting"].get<std::string>()] = change["a"].is_string() ? change["a"].get<std::string>() : "";
    return keys;
  };
  EXPECT_THAT(changes("same"), testing::IsEmpty());
  EXPECT_THAT(changes("new"), testing::ElementsAre(testing::Pair("plugin crasher", testing::StartsWith("sha256:"))));
  EXPECT_THAT(tenon({"compare", "old", "new"}).out, HasSubstr("plugin crasher"));
}

TEST_F(CompareVerb, ARunAgainstItselfDiffersInNothing) {
  run("old");
  const Said said = tenon({"compare", "old", "old/result.json", "--fail-if", "peak_reserved_bytes != +0%"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, Not(HasSubstr("worse")));
  EXPECT_THAT(tenon({"compare", "old", "old/result.json", "--all"}).out,
              AllOf(HasSubstr("parameters"), HasSubstr("same")));
}

TEST_F(CompareVerb, GatesAreExitCode3) {
  run("old", {"allocator.name=\"direct\""});
  run("new", {"allocator.name=\"caching\""});
  const Said said = tenon({"compare", "old", "new", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, HasSubstr("tripped 'peak_reserved_bytes > +2%'"));
  EXPECT_EQ(
      tenon({"compare", "old", "new", "--fail-if", "b.peak_requested_bytes > 1.01 * a.peak_requested_bytes"}).code, 0);
  EXPECT_EQ(tenon({"compare", "old", "new", "--fail-if", "peak_reservd_bytes > 1"}).code, 2);
}

TEST_F(CompareVerb, CellsThatRanBesideEachOtherGetNoVerdictOnSpeed) {
  const std::vector<std::string> sweep = {"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--quiet"};
  for (const char* jobs : {"1", "2"}) {
    std::vector<std::string> words = sweep;
    words.insert(words.end(), {"-j", jobs, "--out", std::string("jobs") + jobs});
    ASSERT_EQ(tenon(words).code, 0);
  }
  for (const auto& [a, b] :
       {std::pair("jobs2", "jobs2"), {"jobs1", "jobs2"}, {"jobs2/cells/001-direct", "jobs2/cells/002-caching"}}) {
    const Said said = tenon({"compare", a, b, "--all"});
    EXPECT_THAT(said.out, AllOf(HasSubstr("no verdict: shared machine"), Not(HasSubstr("one run each")))) << a << b;
    EXPECT_THAT(said.error, HasSubstr("ran beside each other and slowed one another: no verdict on speed")) << a << b;
  }
  EXPECT_THAT(tenon({"compare", "jobs1", "jobs1", "--all"}).out, Not(HasSubstr("shared machine")));
  const Said gate = tenon({"compare", "jobs1", "jobs2", "--fail-if", "step_ms > +1000%"});
  EXPECT_EQ(gate.code, 3) << "what cannot be judged is no pass";
  EXPECT_THAT(gate.error, HasSubstr("step_ms cannot be judged, its sweep ran up to 2 cells at a time"));
}

TEST_F(CompareVerb, ADisqualifiedSideGetsNoVerdictAndFailsAGate) {
  run("good");
  const Said bad = tenon({"run", "exp.toml", "allocator.name=\"" + fixture("faulty").string() + ":how=forgets\"",
                          "--out", "bad", "--quiet"});
  ASSERT_EQ(bad.code, 1);
  for (const auto& [a, b] : {std::pair("good", "bad"), {"bad", "good"}, {"bad", "bad"}}) {
    const Said said = tenon({"compare", a, b});
    EXPECT_EQ(said.code, 0) << "nothing was asked";
    EXPECT_THAT(said.out,
                AllOf(HasSubstr("no verdict: disqualified"), Not(HasSubstr("better")), Not(HasSubstr("same"))))
        << a << " " << b;
    EXPECT_THAT(said.error, AllOf(HasSubstr("bad: allocator 'faulty' is disqualified: it"),
                                  Not(HasSubstr("the same in all")), Not(HasSubstr("the losses"))));
    const Said gate = tenon({"compare", a, b, "--fail-if", "peak_reserved_bytes > +1000%"});
    EXPECT_EQ(gate.code, 3) << a << " " << b;
    EXPECT_THAT(gate.error, HasSubstr("peak_reserved_bytes cannot be judged"));
  }
}

TEST_F(CompareVerb, ADisqualifiedCellOfTheFirstSweepFailsARelativeGate) {
  const std::string faulty = fixture("faulty").string() + ":how=forgets";
  ASSERT_EQ(tenon({"run", "exp.toml", "allocator.name=[\"" + faulty + "\", \"direct\"]", "--sweep", "--out", "a"}).code,
            1);
  const Said said = tenon({"compare", "a", "a", "--fail-if", "b.peak_reserved_bytes > 2 * a.peak_reserved_bytes"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, HasSubstr("is disqualified"));
}

TEST_F(CompareVerb, OfReplaysHasAMatrixOfHistoriesAndAllocators) {
  replay("a.json", {"-a", "direct", "-a", "caching"});
  const Said alone = tenon({"compare", "a.json"});
  EXPECT_EQ(alone.code, 0) << alone.error;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("peak reserved, over that of the first allocator"), HasSubstr("one.trace"),
                               HasSubstr("geometric mean")));
  EXPECT_THAT(tenon({"compare", "a.json", "--filter", "allocator=caching"}).out, Not(HasSubstr("direct")));
  EXPECT_THAT(tenon({"compare", "a.json", "--filter", "nothing"}).error, HasSubstr("no case passes --filter nothing"));
}

TEST_F(CompareVerb, AReplayThatRanOutIsNotCalledBetter) {
  replay("a.json", {"-a", "direct"});
  replay("b.json", {"-a", "direct", "--capacity", "20MiB"});
  // The capacity is part of what a case is: taken out, so that the two are held against each other.
  json document = parse_json(read_bytes(folder_.path() / "b.json"));
  for (json& row : document["rows"]) row["capacity_bytes"] = nullptr;
  folder_.write("b.json", document.dump());
  const Said said = tenon({"compare", "a.json", "b.json", "--filter", "allocator=direct"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("not comparable: OOM at event"));
  // Its smaller peak passes no gate either.
  const Said gated = tenon({"compare", "a.json", "b.json", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(gated.code, 3);
  EXPECT_THAT(gated.error, HasSubstr("peak_reserved_bytes cannot be judged, OOM at event"));
  EXPECT_EQ(tenon({"compare", "b.json", "b.json", "--fail-if", "peak_reserved_bytes > +2%"}).code, 0) << "the same end";
}

TEST_F(CompareVerb, OfReplaysGivesNoVerdictOnSpeedFromOneFileASide) {
  for (const char* passes : {"3", "10"}) {
    replay("a.json", {"-a", "caching", "--repeat", passes});
    replay("b.json", {"-a", "caching", "--repeat", passes});
    const Said said = tenon({"compare", "a.json", "b.json", "--all"});
    EXPECT_THAT(said.out, AllOf(HasSubstr("no verdict: one file each"), Not(HasSubstr("faster by")),
                                Not(HasSubstr("slower by")), Not(HasSubstr("no evidence"))));
    EXPECT_THAT(said.error, HasSubstr("\n  tenon bench OLD NEW --history TRACE\n"));
  }
}

TEST_F(CompareVerb, OfReplaysGivesAVerdictOnSpeedFromSixFilesASide) {
  std::vector<std::string> words = {"compare", "--all", "--filter", "one.trace"};
  for (const char* side : {"a", "b"}) {
    for (int i = 0; i < 6; ++i) {
      words.push_back(side + std::to_string(i) + ".json");
      replay(words.back(), {"-a", "caching"});
    }
    if (side[0] == 'a') words.emplace_back("vs");
  }
  const Said said = tenon(words);
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, Not(HasSubstr("no verdict")));
}

TEST_F(CompareVerb, AGateThatNothingIsJudgedByTrips) {
  replay("a.json", {"-a", "direct", "-a", "caching"});
  json document = parse_json(read_bytes(folder_.path() / "a.json"));
  for (json& row : document["rows"]) row["failure"] = "crashed";
  folder_.write("failed.json", document.dump());
  const Said failed = tenon({"compare", "a.json", "failed.json", "--fail-if", "ooms > 0"});
  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.error, HasSubstr("ooms cannot be judged, crashed"));
  folder_.write("other.json", tenon({"replay", "one.trace", "-a", "direct", "--format", "json", "-q"}).out);
  const Said nothing =
      tenon({"compare", "a.json", "other.json", "--filter", "two.trace", "--fail-if", "b.ooms > a.ooms"});
  EXPECT_EQ(nothing.code, 3);
  EXPECT_THAT(nothing.error, HasSubstr("ooms cannot be judged, it is not in other.json"));
}

TEST_F(CompareVerb, ARunRecordsTheMediansOfStretchesOfItsSteps) {
  run("old");
  const json times = parse_json(read_bytes(folder_.path() / "old/result.json"))["result"]["step_ms"];
  EXPECT_THAT(times["stretch_medians"], testing::SizeIs(testing::AllOf(testing::Ge(1u), testing::Le(12u))));
  EXPECT_LE(times["p25"].get<double>(), times["p50"].get<double>());
  EXPECT_LE(times["p50"].get<double>(), times["p75"].get<double>());
}

TEST_F(CompareVerb, AnAllocatorThatIsAllThatDiffersIsWhatIsCompared) {
  replay("a.json", {"-a", "direct", "--timeline"});
  replay("b.json", {"-a", "caching", "--timeline"});
  const Said said = tenon({"compare", "a.json", "b.json", "--html", "both.html"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("allocator     direct    caching"), HasSubstr("device allocs")));
  EXPECT_THAT(said.error, Not(HasSubstr("is not in")));
  EXPECT_THAT(read_bytes(folder_.path() / "both.html"), AllOf(HasSubstr("Memory over events, all on one axis"),
                                                              HasSubstr("a reserved"), HasSubstr("b reserved")));
}

TEST_F(CompareVerb, OfReplaysWithoutTimelinesThePageSaysHowToHaveThem) {
  replay("a.json", {"-a", "direct"});
  EXPECT_EQ(tenon({"compare", "a.json", "a.json", "--html", "both.html"}).code, 0);
  EXPECT_THAT(read_bytes(folder_.path() / "both.html"), HasSubstr("tenon replay --format json --timeline"));
  EXPECT_EQ(tenon({"replay", "one.trace", "--timeline"}).code, 2) << "a table has no place for them";
}

TEST_F(CompareVerb, OfSweepsHasTheCurvesOfTheCellsAndWhatTheyShare) {
  folder_.write("sweep.toml", experiment("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\"]\n"));
  EXPECT_EQ(tenon({"run", "sweep.toml", "--out", "old", "--quiet"}).code, 0);
  EXPECT_EQ(tenon({"run", "sweep.toml", "train.batch_size=4", "--out", "new", "--quiet"}).code, 0);
  const Said said = tenon({"compare", "old", "new", "--html", "both.html"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("train.batch_size"));
  EXPECT_THAT(said.out, Not(HasSubstr("allocator.name"))) << "that is what the cells differ in";
  const std::string page = read_bytes(folder_.path() / "both.html");
  EXPECT_THAT(page,
              AllOf(HasSubstr("Memory over steps, all on one axis"), HasSubstr("a reserved"), HasSubstr("b reserved")));
  EXPECT_THAT(page, AllOf(HasSubstr("peak reserved, all on one axis"), HasSubstr("<circle"),
                          HasSubstr("role=\"group\" aria-label=\"peak reserved\"><title>peak reserved</title>")));
  EXPECT_THAT(page, Not(HasSubstr("role=\"img\""))) << "which hides the names and figures in it from screen readers";
}

TEST_F(CompareVerb, ANarrowScreenKeepsTheFiguresAndTheirVerdicts) {
  replay("a.json", {"-a", "direct"});
  replay("b.json", {"-a", "caching"});
  const Said said = tenon({"compare", "a.json", "b.json"}, {{"COLUMNS", "60"}});
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
  const Said narrower = tenon({"compare", "a.json", "b.json"}, {{"COLUMNS", "50"}});
  EXPECT_THAT(narrower.out, AllOf(HasSubstr("b against a"), HasSubstr("peak reserved")));
  EXPECT_THAT(narrower.out, HasSubstr("Not shown in 50 columns: a a.json, b b.json")) << "the values go first";
}

TEST_F(CompareVerb, OfSweepsHoldsCellsOfOneNameAgainstEachOther) {
  folder_.write("sweep.toml", experiment("[sweep]\n\"train.batch_size\" = [8, 16]\n"));
  for (const char* out : {"old", "new"}) EXPECT_EQ(tenon({"run", "sweep.toml", "--out", out, "--quiet"}).code, 0);
  const Said said = tenon({"compare", "old", "new", "--format", "json"});
  EXPECT_EQ(said.code, 0) << said.error;
  const json document = parse_json(said.out);
  EXPECT_EQ(document["compared"], "sweep");
  EXPECT_EQ(document["rows"][0]["case"], "8");
}

TEST_F(CompareVerb, OfARunThatWasKilledTellsTheCommandThatGoesOn) {
  run("old");
  run("new");
  std::filesystem::remove(folder_.path() / "new/result.json");  // a run that is killed leaves all but this
  const Said said = tenon({"compare", "old", "new"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("new: the folder holds no result.json: what ran there has not ended; go on with "
                                    "it:\n  tenon run --resume new\n"));
  EXPECT_EQ(tenon({"run", "--resume", "new", "--quiet"}).code, 0);
  EXPECT_EQ(tenon({"compare", "old", "new"}).code, 0);
}

TEST_F(CompareVerb, WhatIsNoResultIsToldInAClearSentence) {
  run("old");
  replay("a.json", {"-a", "direct"});
  EXPECT_THAT(tenon({"compare", "old", "a.json"}).error, HasSubstr("old is a run, and a.json is a replay"));
  EXPECT_THAT(tenon({"compare", "old"}).error, HasSubstr("name a second one"));
  EXPECT_THAT(tenon({"compare", "missing", "old"}).error, HasSubstr("missing: cannot be opened"));
  folder_.write("odd.json", "{\"schema_version\": 1, \"rows\": [{\"setting\": 3}]}");
  EXPECT_THAT(tenon({"compare", "odd.json", "old"}).error, HasSubstr("its rows are those of another verb"));
  folder_.write("empty.json", "");
  EXPECT_THAT(tenon({"compare", "empty.json", "old"}).error, HasSubstr("it is empty"));
  folder_.write("list.json", "[]");
  EXPECT_THAT(tenon({"compare", "list.json", "old"}).error, HasSubstr("expected an object, found array"));
  folder_.write("rows.json", "{\"schema_version\": 1, \"rows\": [7]}");
  EXPECT_THAT(tenon({"compare", "rows.json", "old"}).error, HasSubstr("row 1 is of type number"));
  for (const char* file : {"missing", "odd.json", "empty.json", "list.json", "rows.json"})
    EXPECT_EQ(tenon({"compare", file, "old"}).code, 2);
}

}  // namespace
}  // namespace tenon::test
