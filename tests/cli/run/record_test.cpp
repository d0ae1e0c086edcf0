// `tenon run --record`: what a run leaves of its memory, and what it says when memory ran out.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <iterator>
#include <sstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RecordVerb : public Program {
 protected:
  nlohmann::json result(const std::string& folder) {
    return parse_json(read_bytes(folder_.path() / folder / "result.json"));
  }
  nlohmann::json info(const std::string& file) {
    const Said said = tenon({"trace", "info", file, "--format", "json", "--quiet"});
    EXPECT_EQ(said.code, 0) << said.error;
    return parse_json(said.out)["rows"][0];
  }
  bool exists(const std::string& file) { return std::filesystem::exists(folder_.path() / file); }
};

TEST_F(RecordVerb, WritesEveryFormatWhenAsked) {
  const Said said = tenon({"run", "exp.toml", "--record", "all", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  for (const char* file : {"memory.tenon", "memory.trace.gz", "memory.pickle", "memory.chrome.json", "memory.folded"})
    EXPECT_TRUE(exists(std::string("res/") + file)) << file;
  EXPECT_EQ(result("res")["recorded"].size(), 6U);
  EXPECT_EQ(tenon({"trace", "diff", "res/memory.tenon", "res/memory.trace.gz"}).code, 0);
  const auto binary = info("res/memory.tenon");
  EXPECT_EQ(binary["peak_requested_bytes"], result("res")["memory"]["peak_requested_bytes"]);
  EXPECT_EQ(binary["end_live_bytes"], 0) << "everything was given back";
  EXPECT_EQ(info("res/memory.pickle")["unrecorded_bytes"], 0);
  EXPECT_LE(info("res/memory.pickle")["events"], binary["events"]);
  const auto chrome = parse_json(read_bytes(folder_.path() / "res/memory.chrome.json"));
  int counters = 0, steps = 0;
  for (const auto& event : chrome["traceEvents"]) {
    counters += event["ph"] == "C" ? 1 : 0;
    steps += event["ph"] == "i" && event["name"].get<std::string>().starts_with("step ") ? 1 : 0;
  }
  EXPECT_GT(counters, 100);
  EXPECT_EQ(steps, 8);
  int tensorboards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "res/tensorboard"))
    tensorboards += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  EXPECT_EQ(tensorboards, 1);
}

TEST_F(RecordVerb, APlanIsOfTheRunAndNotOfItsEstimateAndServesTheNext) {
  const std::string recording = "allocator.planned.record=run.plan", planned = "allocator.name=planned";
  const Said dry = tenon({"run", "exp.toml", planned, recording, "--dry-run"});
  ASSERT_EQ(dry.code, 0) << dry.error;
  EXPECT_FALSE(exists("run.plan")) << "a dry run writes nothing";
  const Said first = tenon({"run", "exp.toml", planned, recording, "--out", "one"});
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_THAT(first.error, HasSubstr("tenon: planned: the plan of this run is in run.plan; the next one is served from "
                                     "it with allocator.planned.plan=run.plan\n"));
  const std::string plan = read_bytes(folder_.path() / "run.plan");
  const std::size_t blocks = std::stoul(plan.substr(plan.find("\nblocks ") + 8));
  EXPECT_GE(blocks, result("one")["memory"]["allocations"].get<std::size_t>()) << "all of the run's, not of two steps";
  const Said second = tenon({"run", "exp.toml", planned, "allocator.planned.plan=run.plan", "--out", "two"});
  ASSERT_EQ(second.code, 0) << second.error;
  EXPECT_LE(result("two")["memory"]["peak_reserved_bytes"], result("one")["memory"]["peak_reserved_bytes"]);
  const Said foreign =
      tenon({"run", "exp.toml", planned, "allocator.planned.plan=run.plan", "model.hidden=24", "--out", "other"});
  ASSERT_EQ(foreign.code, 0) << foreign.error;
  const std::size_t told = foreign.error.find("it is not used");
  ASSERT_NE(told, std::string::npos) << foreign.error;
  EXPECT_EQ(foreign.error.find("it is not used", told + 1), std::string::npos) << "once:\n" << foreign.error;
}

TEST_F(RecordVerb, APlanOfARecordedRunServesTheNextAsItServesTheRecording) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + " bottles of beer on the wall, ";
  folder_.write("text.txt", text);
  folder_.write("gpt.toml",
                "name = 'gpt'\n[model]\nname = 'gpt'\nhidden = 16\nlayers = 1\nheads = 2\ncontext = 16\n"
                "[data]\nname = 'text'\npath = 'text.txt'\ntest_limit = 4\n"
                "[train]\nmax_steps = 4\nbatch_size = 4\nthreads = 1\n");
  const auto run = [&](std::vector<std::string> settings, const char* out) {
    settings.insert(settings.begin(), {"run", "gpt.toml"});
    settings.insert(settings.end(), {"--out", out});
    const Said said = tenon(settings);
    EXPECT_EQ(said.code, 0) << said.error;
  };
  run({"allocator.name=direct", "--record", "trace"}, "one");
  ASSERT_EQ(tenon({"plan", "one/memory.tenon", "-o", "one.plan", "--budget", "1s"}).code, 0);
  const Said replayed =
      tenon({"replay", "one/memory.tenon", "-a", "planned:plan=one.plan", "--format", "json", "--quiet"});
  ASSERT_EQ(replayed.code, 0) << replayed.error;
  run({"allocator.name=planned", "allocator.planned.plan=one.plan"}, "two");
  EXPECT_EQ(result("two")["memory"]["peak_reserved_bytes"], parse_json(replayed.out)["rows"][0]["peak_reserved_bytes"])
      << "workspaces have to lie where kernels can take them";
}

TEST_F(RecordVerb, APlanThatCannotBeWrittenIsToldBeforeTheRun) {
  const Said said =
      tenon({"run", "exp.toml", "allocator.name=planned", "allocator.planned.record=no/such/run.plan", "--out", "one"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("no/such/run.plan"), HasSubstr("No such file or directory")));
  EXPECT_FALSE(exists("one/result.json"));
}

TEST_F(RecordVerb, TheReplayOfARecordingReservesWhatTheRunDid) {
  ASSERT_EQ(tenon({"run", "exp.toml", "report.record=[trace]", "--out", "res"}).code, 0);
  const Said said = tenon({"replay", "res/memory.tenon", "-a", "caching", "--format", "json", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto row = parse_json(said.out)["rows"][0];
  EXPECT_EQ(row["peak_reserved_bytes"], result("res")["memory"]["peak_reserved_bytes"]);
  EXPECT_EQ(row["peak_requested_bytes"], result("res")["memory"]["peak_requested_bytes"]);
}

TEST_F(RecordVerb, TheSnapshotReachesToTheEndOfTheLastTest) {
  // A test batch larger than a training batch: the run's peak comes after its last step.
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "trace,snapshot", "train.test_batch_size=1000", "--out", "res"}).code,
            0);
  EXPECT_EQ(info("res/memory.pickle")["peak_requested_bytes"], info("res/memory.tenon")["peak_requested_bytes"]);
  EXPECT_EQ(info("res/memory.pickle")["unrecorded_bytes"], 0);
  EXPECT_GT(info("res/memory.pickle")["end_live_bytes"], 0) << "the model is there";
}

TEST_F(RecordVerb, TimesAndPurposesReachThePageOfEveryRecording) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "all", "--out", "res"}).code, 0);
  const auto page_of = [&](const std::string& file) {
    EXPECT_EQ(tenon({"view", file, "-o", "page.html"}).code, 0) << file;
    return read_bytes(folder_.path() / "page.html");
  };
  for (const char* file : {"res/memory.tenon", "res/memory.trace.gz"})
    EXPECT_THAT(page_of(file), AllOf(HasSubstr("Live memory over time"), HasSubstr("optimizer state"))) << file;
  EXPECT_THAT(page_of("res/memory.pickle"), HasSubstr("Live memory over time"));
  ASSERT_EQ(tenon({"trace", "slice", "res/memory.tenon", "cut.tenon", "--from", "step 2"}).code, 0);
  EXPECT_THAT(page_of("cut.tenon"), AllOf(HasSubstr("Live memory over time"), HasSubstr("optimizer state")));
}

TEST_F(RecordVerb, StepsAreMarksThatCutATrace) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "trace", "--out", "res"}).code, 0);
  const Said said = tenon({"trace", "slice", "res/memory.tenon", "cut.trace", "--from", "step 2", "--until", "step 3"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_GT(info("cut.trace")["events"], 10);
}

TEST_F(RecordVerb, AFinishedRunThatIsResumedNamesTheRecordingsItLacks) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "all", "--out", "res"}).code, 0);
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error, Not(HasSubstr("though asked for")));
  for (const char* file : {"memory.chrome.json", "memory.folded", "memory.tenon"})
    std::filesystem::remove(folder_.path() / "res" / file);
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.error,
              HasSubstr("not in res though asked for: memory.tenon, memory.chrome.json, memory.folded; make "
                        "what can be made of the recordings with\n"));
  int made = 0;
  std::istringstream lines(said.error);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  tenon ")) continue;
    std::istringstream words(line.substr(8));
    const Said command = tenon({std::istream_iterator<std::string>(words), {}});
    EXPECT_EQ(command.code, 0) << line << command.error;
    ++made;
  }
  EXPECT_EQ(made, 3);
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error, Not(HasSubstr("though asked for")));
}

TEST_F(RecordVerb, ARecordingWithoutCallStacksMakesNoFlameGraph) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "trace,snapshot", "--out", "res"}).code, 0);
  const Said refused = tenon({"trace", "convert", "res/memory.tenon", "no.folded"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("res/memory.tenon: the history has no call stacks"),
                                   HasSubstr("`tenon run --record folded`")));
  EXPECT_FALSE(exists("no.folded"));
  ASSERT_EQ(tenon({"trace", "convert", "res/memory.pickle", "yes.folded"}).code, 0) << "the snapshot has them";
  EXPECT_THAT(read_bytes(folder_.path() / "yes.folded"), HasSubstr(";"));
}

TEST_F(RecordVerb, WhatNoOtherRecordingHoldsIsNamedWithTheCommandThatRunsAgain) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "all", "--out", "res"}).code, 0);
  for (const char* file : {"memory.pickle", "memory.folded", "tensorboard"})
    std::filesystem::remove_all(folder_.path() / "res" / file);
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error,
              AllOf(HasSubstr("\n  tenon trace convert res/memory.tenon res/memory.pickle\nonly another run records "
                              "memory.folded, tensorboard:\n  tenon run exp.toml --record all\n"),
                    Not(HasSubstr("convert res/memory.tenon res/memory.folded"))));
}

TEST_F(RecordVerb, OfAFinishedRunThatLostAllItsRecordingsTheCommandRunsItAgain) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "snapshot", "--out", "res"}).code, 0);
  std::filesystem::remove(folder_.path() / "res/memory.pickle");
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error,
              HasSubstr("not in res though asked for: memory.pickle; only another run records them:\n"
                        "  tenon run exp.toml --record snapshot\n"));
}

TEST_F(RecordVerb, AFinishedCellThatIsResumedNamesTheRecordingsItLacks) {
  const std::vector<std::string> sweep = {
      "run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--record", "trace", "--out", "res"};
  ASSERT_EQ(tenon(sweep).code, 0);
  std::filesystem::remove(folder_.path() / "res/cells/002-caching/memory.tenon");
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error,
              AllOf(HasSubstr("[1/2] finished before\n[2/2] finished before\n[2/2] not in res/cells/002-caching though "
                              "asked for: memory.tenon\n")));
}

TEST_F(RecordVerb, NothingIsRecordedUnlessAsked) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "res"))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("memory")));
}

TEST_F(RecordVerb, AnUnknownWordIsRefusedBeforeAnythingRuns) {
  const Said said = tenon({"run", "exp.toml", "--record", "snapshto", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("snapshto"), HasSubstr("did you mean snapshot?")));
  EXPECT_FALSE(exists("res"));
}

TEST_F(RecordVerb, EachCellOfASweepRecordsIntoItsOwnFolder) {
  const Said said = tenon(
      {"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--record", "trace", "--out", "res", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  int traces = 0;
  for (const auto& cell : std::filesystem::directory_iterator(folder_.path() / "res/cells"))
    traces += std::filesystem::exists(cell.path() / "memory.tenon") ? 1 : 0;
  EXPECT_EQ(traces, 2);
}

// The caching allocator takes 2 MiB at a time, the limit is below that: an allocator that takes what is asked for fits.
class OutOfMemoryVerb : public RecordVerb {
 protected:
  std::vector<std::string> words(std::vector<std::string> more) {
    std::vector<std::string> all = {"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=1MiB"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(OutOfMemoryVerb, TheMessageNamesTheAllocatorThatWouldHaveFittedAndItDoes) {
  const Said said = tenon(words({"--out", "res"}));
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, AllOf(HasSubstr("OutOfMemory: caching on cpu"), HasSubstr("'direct' ("),
                                HasSubstr("would have fitted up to this request; set allocator.name=\"direct\"")));
  const auto json = result("res");
  EXPECT_EQ(json["out_of_memory"]["reproduced"], true);
  EXPECT_EQ(json["out_of_memory"]["others"][0]["allocator"], "direct");
  EXPECT_EQ(json["out_of_memory"]["others"][0]["fits"], true);
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("would have fitted"));
  const Said advised = tenon(words({"allocator.name=\"direct\"", "--out", "advised"}));
  EXPECT_EQ(advised.code, 0) << advised.error;
}

TEST_F(OutOfMemoryVerb, TheResultKeepsWhoseTheMemoryWas) {
  const Said said = tenon(words({"report.attribution=true", "--out", "res"}));
  EXPECT_EQ(said.code, 4);
  EXPECT_FALSE(result("res")["attribution"].is_null());
  EXPECT_THAT(said.error, Not(HasSubstr("report.attribution=true")));
}

TEST_F(OutOfMemoryVerb, TheRecordingOfAFailureEndsWithTheRequestThatFailed) {
  ASSERT_EQ(tenon(words({"--record", "trace,snapshot", "--out", "res"})).code, 4);
  const Said info = tenon({"trace", "info", "res/memory.pickle"});
  EXPECT_THAT(info.error, HasSubstr("ran out of memory in the recording"));
  const Said doctor = tenon({"doctor", "res/memory.tenon", "--capacity", "1MiB"});
  EXPECT_EQ(doctor.code, 0) << doctor.error;
  EXPECT_THAT(doctor.out,
              AllOf(HasSubstr("'direct'"), HasSubstr("would have fitted"), HasSubstr("allocator.name=\"direct\"")));
}

TEST_F(OutOfMemoryVerb, TheRecordingSaysWhatTheLimitLeft) {
  ASSERT_EQ(tenon(words({"--record", "all", "--out", "res"})).code, 4);
  for (const char* file : {"res/memory.tenon", "res/memory.trace.gz", "res/memory.pickle"}) {
    const Said doctor = tenon({"doctor", file});
    EXPECT_EQ(doctor.code, 0) << doctor.error;
    EXPECT_THAT(doctor.out,
                AllOf(HasSubstr("Ran out of memory"), HasSubstr("of the 1.00 MiB that the process may use were free")))
        << file;
  }
}

TEST_F(OutOfMemoryVerb, NeverSuggestsTheAllocatorThatFailed) {
  const Said said = tenon(words({"allocator.name=expandable", "--out", "res"}));
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, Not(HasSubstr("'expandable' (")));
}

TEST_F(OutOfMemoryVerb, WhereNothingWouldFitItSaysThatWithTheFigures) {
  const Said said =
      tenon({"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=16KiB", "--out", "res"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, AllOf(HasSubstr("no allocator could have served it"), HasSubstr("16.0 KiB")));
}

TEST_F(OutOfMemoryVerb, AFailureThatALayerInjectedIsNotBlamedOnTheAllocator) {
  const Said said = tenon({"run", "exp.toml", "allocator.layers=[inject]", "allocator.inject.nth=30",
                           "allocator.inject.persist=true", "--out", "res"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, Not(HasSubstr("would have fitted")));
}

TEST_F(OutOfMemoryVerb, TheReplayCanBeTurnedOff) {
  const Said said = tenon(words({"report.replay_ooms=false", "--out", "res"}));
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, Not(HasSubstr("replayed")));
}

}  // namespace
}  // namespace tenon::test
