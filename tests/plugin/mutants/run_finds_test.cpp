// `tenon run` on the mutants: what a training run tells of a bad allocator, and what it keeps of its figures.
#include "cli/program.h"

#include "plugin/mutants/flaws.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

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
  nlohmann::json result() { return nlohmann::json::parse(read_bytes(folder_.path() / "res/result.json")); }
  std::string page() { return read_bytes(folder_.path() / "res/report.html"); }
};

// A device of 20 MiB holds one chunk of 16 MiB: a second one is taken when the first has gone back.
const std::vector<std::string> kSmallDevice = {"device.name=simulated:0", "device.simulated.capacity=20MiB"};

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

INSTANTIATE_TEST_SUITE_P(Flaws, RunThatEnds,
                         testing::Values(Flaw{"bytes_too_small", "bytes for a request of"},
                                         Flaw{"bytes_doubled", "overlaps the live block"},
                                         Flaw{"shifted_overlap", "overlaps the live block"},
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

class RunThatHangs : public RunOfAMutant, public testing::WithParamInterface<Flaw> {};

TEST_P(RunThatHangs, EndsAtTheDeadlineOfACallAndSaysWhichDidNotComeBack) {
  const Said said = run(GetParam().name, {"--deadline", "1"});
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("buddy.so) did not come back from "), HasSubstr(GetParam().words),
                                HasSubstr("(--deadline), in "), HasSubstr("where it was:")));
  EXPECT_EQ(result()["status"], "hung");
}

INSTANTIATE_TEST_SUITE_P(Flaws, RunThatHangs,
                         testing::Values(Flaw{"deadlock", "deallocate("}, Flaw{"spin", "allocate("}), name_of_flaw);

TEST_F(RunOfAMutant, CtrlCEndsOneWhoseAllocatorHangs) {
  StartedProgram program(
      folder_, {"run", "exp.toml", "allocator.name=" + fixture("buddy").string() + ":flaw=spin", "--out", "res"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 128 + SIGINT);
  EXPECT_THAT(said.error, AllOf(HasSubstr("SIGINT: allocator 'buddy' ("), HasSubstr("does not come back")));
  EXPECT_EQ(result()["status"], "interrupted");
}

TEST_F(RunOfAMutant, ForeignExceptionsAreErrorsThatNameTheCall) {
  for (const auto& [flaw, what] :
       {std::pair("throws_42", "threw int"), std::pair("throws_out_of_range", "(\"map::at\")")}) {
    const Said said = run(flaw);
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'buddy': allocate("), HasSubstr(what)));
    EXPECT_EQ(result()["status"], "failed");
  }
}

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
                           "allocator.name=[\"" + buddy + ":flaw=segfault\", \"" + buddy + ":flaw=spin\", \"" + buddy +
                               ":flaw=leaks_a_chunk\", \"" + buddy + "\"]",
                           "--sweep", "--deadline", "1", "--out", "res", "--format", "json"});
  EXPECT_EQ(said.code, 1);
  const auto rows = nlohmann::json::parse(said.out)["rows"];
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
