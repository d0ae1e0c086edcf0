// Runs of several ranks of which one is killed, hangs, runs out of memory or finds its disk full: bounded time, names,
// exit codes, and the last state goes on to the same losses.
#include "launched.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// Long enough to be caught in the middle, and with a state after every other step.
class FailingRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_, "train", 64, 64);
    write_pictures(folder_, "t10k", 16, 16);
    folder_.write("exp.toml", experiment("save_every = 2\n[distributed]\nname = \"mpi\"\n[distributed.mpi]\norder = "
                                         "\"rank\"\ntimeout = 60\n"));
  }
  nlohmann::json result(const std::string& out) const {
    return parse_json(read_bytes(folder_.path() / out / "result.json"));
  }
  std::vector<double> losses(const std::string& out) const { return result(out).at("result").at("losses"); }

  /// What there was of a run before it failed is in its result: steps with their losses, the memory of four ranks.
  void keeps_what_there_was(const std::string& out) const {
    const nlohmann::json kept = result(out);
    const auto steps = kept["result"]["steps"].get<std::size_t>();
    EXPECT_GE(steps, 2U);
    EXPECT_EQ(losses(out).size(), steps);
    EXPECT_GT(kept["memory"]["peak_allocated_bytes"], 0);
    ASSERT_EQ(kept["ranks"]["count"], 4);
    EXPECT_LT(kept["ranks"]["worst_rank"], 4);
    for (const nlohmann::json& rank : kept["ranks"]["memory"]) EXPECT_GT(rank["peak_allocated_bytes"], 0);
  }
  static std::size_t lines_of_tenon(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("tenon: "); at != std::string::npos; at = text.find("tenon: ", at + 1)) ++count;
    return count;
  }

  /// Goes on in `out` and holds what comes out against a run that nothing happened to.
  void goes_on_to_the_same_losses(const std::string& out, const std::string& settings) {
    const Launched again = mpirun(folder_, "-n 4 $tenon run --resume " + out);
    ASSERT_EQ(again.code, 0) << again.text;
    const Launched whole = mpirun(folder_, "-n 4 $tenon run exp.toml " + settings + " --out whole");
    ASSERT_EQ(whole.code, 0) << whole.text;
    EXPECT_EQ(result(out)["status"], "done");
    EXPECT_EQ(losses(out), losses("whole"));
  }
  Folder folder_;
};

TEST_F(FailingRuns, ARankThatIsKilledIsNamedAndTheRunGoesOnFromItsState) {
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml train.epochs=100 --out run",
                                               "run/state.safetensors", /*rank=*/2, SIGKILL);
  EXPECT_NE(launched.code, 0) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_THAT(launched.text, ContainsRegex("tenon: rank [013] of 4: rank 2 \\(process [0-9]+ on [^)]+\\) has ended"));
  EXPECT_EQ(result("run")["status"], "failed");
  EXPECT_THAT(result("run")["error"].get<std::string>(),
              ContainsRegex("rank 2 \\(process [0-9]+ on [^)]+\\) has ended"));
  EXPECT_THAT(launched.text, HasSubstr("go on from the last saved state with\n  mpirun -n 4 tenon run --resume run\n"));
  keeps_what_there_was("run");
  goes_on_to_the_same_losses("run", "train.epochs=100");
}

TEST_F(FailingRuns, ARunThatIsInterruptedSaysHowAllItsRanksGoOn) {
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml train.epochs=100 --out run",
                                               "run/state.safetensors", /*rank=*/0, SIGINT);
  EXPECT_EQ(launched.code, 130) << launched.text;
  EXPECT_THAT(launched.text,
              ContainsRegex("go on( \\(from step [0-9]+\\))? with\n  mpirun -n 4 tenon run --resume run\n"));
  const Launched other = mpirun(folder_, "-n 4 $tenon run exp.toml --out run");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.text, HasSubstr("or go on with it:\n  mpirun -n 4 tenon run --resume run\n"));
}

TEST_F(FailingRuns, ASignalToOneRankEndsAllWithItsCode) {
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml train.epochs=100 --out run",
                                               "run/state.safetensors", /*rank=*/2, SIGINT);
  EXPECT_EQ(launched.code, 130) << launched.text;
  EXPECT_EQ(result("run")["status"], "interrupted");
  EXPECT_EQ(result("run")["exit_code"], 130);
  EXPECT_THAT(result("run")["error"].get<std::string>(), HasSubstr("SIGINT to another rank"));
}

TEST_F(FailingRuns, WhereParametersAreDividedARankThatIsKilledIsNamedAndTheRunGoesOnToo) {
  const std::string divided = "train.epochs=100 'distributed.shard=\"parameters\"'";
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml " + divided + " --out run",
                                               "run/state.safetensors", /*rank=*/2, SIGKILL);
  EXPECT_NE(launched.code, 0) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_THAT(result("run")["error"].get<std::string>(),
              ContainsRegex("rank 2 \\(process [0-9]+ on [^)]+\\) has ended"));
  goes_on_to_the_same_losses("run", "train.epochs=100");
}

TEST_F(FailingRuns, WhereRankZeroIsKilledOneOfTheOthersSaysSoAndLeavesItsResult) {
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml train.epochs=100 --out run",
                                               "run/state.safetensors", /*rank=*/0, SIGKILL);
  EXPECT_NE(launched.code, 0) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_THAT(launched.text, ContainsRegex("tenon: rank [123] of 4: rank 0 \\(process [0-9]+ on [^)]+\\) has ended"));
  EXPECT_THAT(launched.text, HasSubstr("results: "));
  EXPECT_THAT(launched.text, ContainsRegex("go on from the last saved state with\n  mpirun -n 4 tenon run --resume "));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
  EXPECT_EQ(result("run")["status"], "failed");
  EXPECT_THAT(result("run")["error"].get<std::string>(), HasSubstr("rank 0 (process"));
  keeps_what_there_was("run");
  goes_on_to_the_same_losses("run", "train.epochs=100");
}

// A machine under load takes seconds to start four ranks: no healthy one of them may be late.
TEST_F(FailingRuns, ARankThatHangsIsNamedAfterTheTimeoutAndTheRunGoesOnFromItsState) {
  std::string patient = read_bytes(folder_.path() / "exp.toml");
  patient.replace(patient.find("timeout = 60"), std::string("timeout = 60").size(), "timeout = 12");
  folder_.write("exp.toml", patient);
  const Launched launched = mpirun_with_signal(folder_, "-n 4 $tenon run exp.toml train.epochs=100 --out run",
                                               "run/state.safetensors", /*rank=*/3, SIGSTOP);
  EXPECT_NE(launched.code, 0) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_EQ(result("run")["status"], "failed");
  EXPECT_THAT(result("run")["error"].get<std::string>(),
              AllOf(HasSubstr("is not done after 12.0 s (timeout): rank 3 (process"),
                    HasSubstr("does not answer: it is stopped, cut off or dead")));
  goes_on_to_the_same_losses("run", "train.epochs=100");
}

TEST_F(FailingRuns, ARankThatRunsOutOfMemoryIsNamedWithItsReportAndExitCode) {
  folder_.write("exp.toml", experiment("[allocator]\nlayers = [\"limit\"]\n[allocator.limit]\nbytes = \"1GiB\"\n"
                                       "[distributed]\nname = \"mpi\"\n"));
  const std::string run = "$tenon run exp.toml --out run";
  const Launched launched =
      mpirun(folder_, "-n 2 " + run + " : -n 1 env TENON_ALLOCATOR__LIMIT__BYTES=400KiB " + run + " : -n 1 " + run);
  EXPECT_EQ(launched.code, 4) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
  EXPECT_THAT(launched.text, HasSubstr("tenon: rank 2 of 4: OutOfMemory"));
}

TEST_F(FailingRuns, ARankThatRunsOutOfMemoryInTheMiddleLeavesTheResultOfRankZeroWithItsName) {
  folder_.write("exp.toml",
                experiment("[allocator]\nname = \"direct\"\nlayers = [\"inject\"]\n[allocator.inject]\nnth = 0\n"
                           "[distributed]\nname = \"mpi\"\n"));
  const std::string run = "$tenon run exp.toml --out run";
  const Launched launched =
      mpirun(folder_, "-n 1 " + run + " : -n 1 env TENON_ALLOCATOR__INJECT__NTH=200 " + run + " : -n 2 " + run);
  EXPECT_EQ(launched.code, 4) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_EQ(result("run")["status"], "failed");
  EXPECT_EQ(result("run")["exit_code"], 4);
  EXPECT_THAT(result("run")["error"].get<std::string>(), HasSubstr("rank 1 of 4: OutOfMemory"));
  keeps_what_there_was("run");
}

TEST_F(FailingRuns, WhereAllRanksRunOutOfMemoryRankZeroSaysItForAll) {
  folder_.write("exp.toml", experiment("[allocator]\nlayers = [\"limit\"]\n[allocator.limit]\nbytes = \"400KiB\"\n"
                                       "[distributed]\nname = \"mpi\"\n"));
  const Launched launched = mpirun(folder_, "-n 4 $tenon run exp.toml --out run");
  EXPECT_EQ(launched.code, 4) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
  EXPECT_THAT(launched.text, HasSubstr("tenon: OutOfMemory"));
}

TEST_F(FailingRuns, AFullDiskOfTheRankThatWritesEndsAllRanks) {
  const std::string run = "$tenon run exp.toml --out run";
  const Launched launched = mpirun(folder_, "-n 1 sh -c 'ulimit -f 8; exec \"$0\" \"$@\"' " + run + " : -n 3 " + run);
  EXPECT_EQ(launched.code, 1) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_THAT(launched.text, HasSubstr("File too large"));
  const Launched again = mpirun(folder_, "-n 4 $tenon run exp.toml --out again");
  EXPECT_EQ(again.code, 0) << again.text;
}

TEST_F(FailingRuns, WhereTheWholeStateFindsTheDiskFullTheResultHasWhatThereWas) {
  const Launched launched = mpirun(folder_, "-n 4 $tenon run exp.toml train.save=/dev/full --out run");
  EXPECT_EQ(launched.code, 1) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  EXPECT_THAT(launched.text, HasSubstr("No space left on device"));
  EXPECT_EQ(result("run")["status"], "failed");
  keeps_what_there_was("run");
}

TEST_F(FailingRuns, WhatIsWrongWithTheExperimentIsSaidOnceForAllRanks) {
  const Launched launched = mpirun(folder_, "-n 4 $tenon run exp.toml train.batch_size=2 --out run");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
}

}  // namespace
}  // namespace tenon::test
