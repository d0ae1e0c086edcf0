// `tenon run` on the mutants: what a training run tells of a bad allocator, and what it keeps of its figures.
#include "cli/program.h"
#include "support/json.h"

#include "plugin/mutants/flaws.h"

#include <tenon/conformance/service_watch.h>

#include <gmock/gmock.h>

#include <csignal>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunOfAMutant : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("exp.toml", experiment("[report]\nestimate = false\n"));
  }
  Said run(const std::string& flaw, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"run", "exp.toml",
                                      "allocator.name=" + fixture("buddy").string() + ":flaw=" + flaw, "--out", "res"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  nlohmann::json result() { return parse_json(read_bytes(folder_.path() / "res/result.json")); }
  std::string page() { return read_bytes(folder_.path() / "res/report.html"); }
};

struct Flaw {
  const char* name;
  const char* words;
};

void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.name; }

std::string name_of_flaw(const testing::TestParamInfo<Flaw>& info) { return info.param.name; }

class RunThatEnds : public RunOfAMutant, public testing::WithParamInterface<Flaw> {};

TEST_P(RunThatEnds, IsDisqualifiedWithItsFigures) {
  const Said said = run(GetParam().name);
  EXPECT_EQ(said.code, 1) << "as a replay that is disqualified";
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("tenon: allocator 'buddy' is disqualified: it "), HasSubstr(GetParam().words)));
  EXPECT_THAT(said.out, AllOf(HasSubstr("disqualified"), HasSubstr("peak reserved"), HasSubstr("results: res\n")));
  const nlohmann::json json = result();
  EXPECT_EQ(json["status"], "disqualified");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_THAT(json["disqualified"].dump(), HasSubstr(GetParam().words));
  EXPECT_EQ(json["result"]["steps"], 8) << "it came to its end";
  EXPECT_GT(json["memory"]["peak_reserved_bytes"], 0);
  EXPECT_THAT(page(), AllOf(HasSubstr("The allocator is disqualified"), HasSubstr("It broke its contract")));
}

TEST_F(RunOfAMutant, TheWayOnIsTheKit) {
  const std::string advice =
      "The kit names the broken promise, and the shortest history that breaks it:\n  tenon plugins test " +
      fixture("buddy").string() + ":flaw=";
  EXPECT_THAT(run("bytes_too_small").error, HasSubstr(advice + "bytes_too_small\n"));
  EXPECT_THAT(run("segfault").error, HasSubstr(advice + "segfault\n"));
  EXPECT_THAT(run("bytes_too_small", {"--dry-run"}).error, HasSubstr(advice + "bytes_too_small\n"));
  EXPECT_THAT(run("none").error, Not(HasSubstr("plugins test")));
}

// A run makes one for each kind of memory that it uses.
TEST_F(RunOfAMutant, ALeakOfSeveralInstancesIsToldInPlainWords) {
  conformance::ServiceFaults faults([] { return ""; });
  faults.add(conformance::ServiceFaults::Kind::kLeak, "kept memory when it was destroyed: 3 bytes");
  faults.add(conformance::ServiceFaults::Kind::kLeak, "kept memory when it was destroyed: 5 bytes");
  EXPECT_EQ(faults.sentences().front(), "kept memory when it was destroyed: 3 bytes; so did 1 other instance of it");
}

TEST_F(RunOfAMutant, IsFinishedOnceItIsDisqualifiedAndStaysSoWhenItIsResumed) {
  ASSERT_EQ(run("leaks_a_chunk").code, 1);
  const nlohmann::json before = result();
  const Said again = tenon({"run", "--resume", "res"});
  EXPECT_EQ(again.code, 1) << again.error;
  EXPECT_THAT(again.error, HasSubstr("this run is finished; nothing was run"));
  EXPECT_EQ(result(), before);
}

INSTANTIATE_TEST_SUITE_P(Flaws, RunThatEnds,
                         testing::Values(Flaw{"bytes_too_small", "bytes for a request of"},
                                         Flaw{"bytes_doubled", "overlaps the live block"},
                                         Flaw{"misaligned", "is not aligned to 64"},
                                         Flaw{"drops_request", "allocate() fills in Block::request"},
                                         Flaw{"leaks_a_chunk", "kept memory when it was destroyed"}),
                         name_of_flaw);

class RunThatCrashes : public RunOfAMutant, public testing::WithParamInterface<Flaw> {};

TEST_P(RunThatCrashes, NamesPluginCallStepAndStackAndKeepsWhatWasFinished) {
  const Said said = run(GetParam().name + std::string(",after=150"), {"train.epochs=40"});
  const bool is_abort = std::string(GetParam().name) == "throws_from_noexcept";
  EXPECT_EQ(said.code, 128 + (is_abort ? SIGABRT : SIGSEGV)) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'buddy' ("), HasSubstr("buddy.so) crashed in "),
                                HasSubstr("where it was:"), HasSubstr(is_abort ? "SIGABRT" : "SIGSEGV"),
                                HasSubstr(GetParam().words), HasSubstr("results: ")));
  const nlohmann::json json = result();
  EXPECT_EQ(json["status"], "crashed");
  EXPECT_EQ(json["exit_code"], said.code);
  EXPECT_EQ(json["crash"]["signal"], said.code - 128);
  EXPECT_GT(json["result"]["steps"], 0);
  EXPECT_EQ(json["timeline"].size(), json["result"]["steps"]);
  EXPECT_GT(json["memory"]["peak_reserved_bytes"], 0);
  EXPECT_THAT(json["crash"]["call"].get<std::string>(), HasSubstr(is_abort ? "deallocate(" : "allocate("));
  EXPECT_THAT(json["crash"]["stack"].dump(), HasSubstr(GetParam().words));
  EXPECT_THAT(page(), AllOf(HasSubstr("crashed"), HasSubstr("Where it was")));
}

INSTANTIATE_TEST_SUITE_P(Flaws, RunThatCrashes,
                         testing::Values(Flaw{"segfault", "Buddy::misbehave("},
                                         Flaw{"recursion", "Buddy::recurse(int)"},
                                         Flaw{"throws_from_noexcept", "fail_a_free()"}),
                         name_of_flaw);

// It never answers its 61st request.
std::string hanging() { return "allocator.name=" + fixture("crasher").string() + ":how=hang,after=60"; }

TEST_F(RunOfAMutant, ACallThatDoesNotComeBackEndsTheRunAtTheDeadlineWithItsName) {
  const Said said = tenon({"run", "exp.toml", hanging(), "--deadline", "1", "--out", "res"});
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'crasher' ("),
                                HasSubstr("did not come back from allocate("), HasSubstr("(--deadline), in step "),
                                HasSubstr("where it was:\n"), HasSubstr("Crasher::allocate(")));
  EXPECT_EQ(result()["status"], "hung");
  EXPECT_TRUE(result()["crash"]["signal"].is_null());
}

TEST_F(RunOfAMutant, OneThatSpinsWhereAChunkIsFullIsFoundInARunThatFillsOne) {
  const Said said = run("spin,chunk=1MiB", {"model.hidden=512", "--deadline", "1"});
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("did not come back from allocate("), HasSubstr("Buddy::take_from(")));
}

TEST_F(RunOfAMutant, CtrlCEndsOneWhoseAllocatorHangs) {
  StartedProgram program(folder_, {"run", "exp.toml", hanging(), "--out", "res"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 128 + SIGINT);
  if (said.error.find("after step") == std::string::npos) {  // it may have come before the first request
    EXPECT_THAT(said.error, AllOf(HasSubstr("SIGINT: allocator 'crasher' ("), HasSubstr("does not come back")));
  }
  EXPECT_EQ(result()["status"], "interrupted");
}

// On so small a device chunks go back before the end.
TEST_F(RunOfAMutant, AChunkThatGoesBackTwiceOrWithAnotherSizeIsFoundInTheStepAndTheDeviceStaysWhole) {
  for (const auto& [flaw, words] : {std::pair("wrong_release_size", "it was acquired with 1048576 bytes, in step"),
                                    std::pair("double_release", "never acquired, or released before, in step")}) {
    const Said said = run(flaw + std::string(",chunk=1MiB"),
                          {"device.name=simulated:0", "device.simulated.capacity=14MiB", "model.hidden=512"});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.error, AllOf(HasSubstr("is disqualified: it misused its device: release("), HasSubstr(words)));
    EXPECT_EQ(result()["result"]["steps"], 8);
  }
}

TEST_F(RunOfAMutant, OneThatHandsOutLiveMemoryIsDisqualifiedWhereTheRunFailsOfItToo) {
  const Said said = run("shifted_overlap");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("allocator 'buddy' is disqualified: it handed out ["),
                                HasSubstr("which overlaps the live block ["), HasSubstr(" times")));
  EXPECT_THAT(result()["disqualified"].dump(), HasSubstr("overlaps the live block"));
}

class RunThroughRoute : public RunOfAMutant {
 protected:
  Said run_to(const std::string& spec) {
    return tenon({"run", "exp.toml", "allocator.name=direct", "allocator.layers=[\"route\"]",
                  "allocator.route.to=\"" + spec + "\"", "--deadline", "1", "--out", "res"});
  }
};

TEST_F(RunThroughRoute, AFaultOfTheOtherAllocatorIsToldWithItsName) {
  const Said said = run_to(fixture("buddy").string() + ":flaw=bytes_too_small");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("allocator 'buddy' behind the layer 'route' is disqualified: it handed out"),
                                Not(HasSubstr("allocator 'direct' is"))));
  EXPECT_THAT(result()["disqualified"][0].get<std::string>(),
              testing::StartsWith("allocator 'buddy' behind the layer 'route' handed out"));
}

TEST_F(RunThroughRoute, ACrashOrAHangOfTheOtherAllocatorIsToldWithItsNameAndFile) {
  const Said crashed = run_to(fixture("buddy").string() + ":flaw=segfault,after=150");
  EXPECT_EQ(crashed.code, 128 + SIGSEGV);
  EXPECT_THAT(crashed.error, AllOf(HasSubstr("allocator 'buddy' behind the layer 'route' ("),
                                   HasSubstr("buddy.so) crashed in allocate("), HasSubstr("where it was:")));
  const Said hung = run_to(fixture("crasher").string() + ":how=hang,after=60");
  EXPECT_EQ(hung.code, 1);
  EXPECT_THAT(hung.error, AllOf(HasSubstr("allocator 'crasher' behind the layer 'route' ("),
                                HasSubstr("did not come back from allocate(")));
}

TEST_F(RunOfAMutant, AForeignExceptionDisqualifiesWithItsCallItsStepAndWhatWasFinished) {
  for (const auto& [flaw, what] : {std::pair("throws_42", "tenon::Error: int, which"),
                                   std::pair("throws_out_of_range", "(\"map::at\"), in step ")}) {
    const Said said = run(flaw + std::string(",after=150"), {"train.epochs=40"});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.error,
                AllOf(HasSubstr("tenon: allocator 'buddy' is disqualified: it ended allocate("), HasSubstr(what),
                      HasSubstr(", in step "), HasSubstr("\nfinished: "), HasSubstr(" of 160 steps, loss "),
                      HasSubstr("tenon plugins test "), HasSubstr("results: res\n")));
    const nlohmann::json json = result();
    EXPECT_EQ(json["status"], "disqualified");
    EXPECT_GT(json["result"]["steps"], 0);
    EXPECT_EQ(json["timeline"].size(), json["result"]["steps"]);
  }
}

TEST_F(RunOfAMutant, ANullAddressDisqualifiesWhereItIsHandedOut) {
  const Said said = tenon(
      {"run", "exp.toml", "allocator.name=" + fixture("faulty").string() + ":how=null,after=150", "--out", "res"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'faulty' is disqualified: it answered a request of "),
                                HasSubstr("with a null address"), HasSubstr(", in step "), HasSubstr("\nfinished: "),
                                HasSubstr("tenon plugins test "), HasSubstr("results: res\n")));
  EXPECT_EQ(result()["status"], "disqualified");
}

TEST_F(RunOfAMutant, ACrashNamesWhatWentWrongBeforeItInTheSameStep) {
  const Said said = tenon(
      {"run", "exp.toml", "allocator.name=" + fixture("faulty").string() + ":how=outside,after=150", "--out", "res"});
  EXPECT_EQ(said.code, 128 + SIGSEGV);
  EXPECT_THAT(said.error, AllOf(HasSubstr("crashed"), HasSubstr("before that allocator 'faulty' handed out [0x1000, "),
                                HasSubstr("tenon plugins test ")));
  EXPECT_THAT(result()["disqualified"].dump(), HasSubstr("handed out [0x1000, "));
}

TEST_F(RunOfAMutant, OfADeviceThatComputesNothingNoLossIsTold) {
  const Said said = run("throws_42,after=150",
                        {"train.epochs=40", "device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("\nfinished: "), HasSubstr(" of 160 steps, peak reserved "),
                                Not(HasSubstr("steps, loss")), Not(HasSubstr("nan"))));
}

class RunWhoseProcessIsEnded : public RunOfAMutant, public testing::WithParamInterface<Flaw> {
 protected:
  static std::string ending(const std::string& how) { return fixture("crasher").string() + ":after=60,how=" + how; }
};

TEST_P(RunWhoseProcessIsEnded, IsToldAsACrashIs) {
  const std::string spec = ending(GetParam().name);
  const Said said = tenon({"run", "exp.toml", "allocator.name=" + spec, "--out", "res"});
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: the process of the run ended"), HasSubstr(GetParam().words),
                                HasSubstr(" before it was done, in allocate("), HasSubstr(" of allocator 'crasher' ("),
                                HasSubstr(", in step "), HasSubstr("Crasher::allocate("), HasSubstr("\nfinished: "),
                                HasSubstr("tenon plugins test " + spec), HasSubstr("results: ")));
  const nlohmann::json json = result();
  EXPECT_EQ(json["status"], "crashed");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_TRUE(json["crash"]["signal"].is_null());
  EXPECT_GT(json["result"]["steps"], 0);
}

TEST_P(RunWhoseProcessIsEnded, IsARowOfItsSweepThatSaysSo) {
  const Said said = tenon({"run", "exp.toml", "allocator.name=[\"" + ending(GetParam().name) + "\", \"direct\"]",
                           "--sweep", "--out", "res", "--format", "json"});
  EXPECT_EQ(said.code, 1);
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["status"], "crashed");
  EXPECT_THAT(rows[0]["error"].get<std::string>(),
              AllOf(HasSubstr(GetParam().words), HasSubstr("before it was done, in allocate(")));
  EXPECT_EQ(rows[1]["status"], "done");
}

INSTANTIATE_TEST_SUITE_P(By, RunWhoseProcessIsEnded,
                         testing::Values(Flaw{"exit", "ended with code 9"}, Flaw{"leave", "ended with code 0"},
                                         Flaw{"quick_exit", "ended before"}, Flaw{"raw", "ended with code 9"}),
                         name_of_flaw);

TEST_F(RunOfAMutant, SoundAllocatorsGiveNoAlarm) {
  for (const std::string& name :
       {fixture("buddy").string(), std::string("caching"), std::string("expandable"), std::string("direct")}) {
    const Said said = tenon({"run", "exp.toml", "allocator.name=" + name, "--out", "res"});
    EXPECT_EQ(said.code, 0) << name << said.error;
    EXPECT_THAT(said.error, Not(HasSubstr("disqualified")));
    EXPECT_FALSE(result().contains("disqualified"));
  }
}

TEST_F(RunOfAMutant, ACellThatCrashesKeepsItsWordsAndTheOthersGoOn) {
  const std::string buddy = fixture("buddy").string();
  const Said said = tenon({"run", "exp.toml",
                           "allocator.name=[\"" + buddy + ":flaw=segfault\", \"" + fixture("crasher").string() +
                               ":how=hang\", \"" + buddy + ":flaw=leaks_a_chunk\", \"" + buddy + "\"]",
                           "--sweep", "--deadline", "1", "--out", "res", "--format", "json"});
  EXPECT_EQ(said.code, 1);
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0]["status"], "crashed");
  EXPECT_THAT(rows[0]["error"].get<std::string>(),
              AllOf(HasSubstr("buddy.so) crashed in allocate("), HasSubstr("SIGSEGV")));
  EXPECT_EQ(rows[1]["status"], "hung");
  EXPECT_EQ(rows[2]["status"], "disqualified");
  EXPECT_GT(rows[2]["peak_reserved_bytes"], 0) << "figures are printed";
  EXPECT_EQ(rows[3]["status"], "done");
}

}  // namespace
}  // namespace tenon::test
