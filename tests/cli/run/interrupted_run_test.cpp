// Runs and sweeps that are ended in the middle, at moments that a seed chooses: nothing is corrupt, nothing that was
// finished is lost, the command that is printed goes on, and the whole equals a run that nobody disturbed.
#include "cli/interrupted.h"

#include <sys/stat.h>

#include <atomic>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class InterruptedRun : public InterruptedProgram {
 protected:
  /// What was said when the signal came is what has happened in the end.
  static void expect_words_that_fit(const Said& said, const std::string& where) {
    if (said.error.find("once more ends at once") == std::string::npos) return;
    const bool is_ended = said.error.find("ended by SIG") != std::string::npos;
    const bool is_late = said.error.find(" came when the last ") != std::string::npos;
    EXPECT_TRUE(said.code == 0 ? is_late && !is_ended : is_ended && !is_late) << where << said.error;
  }

  /// Starts it with a pipe in the place of its report: it waits there when everything is computed, and is interrupted.
  Said interrupted_at_its_report(const std::string& experiment, const std::string& out) {
    fs::create_directories(at(out));
    const std::string report = at(out + "/report.html").string();
    EXPECT_EQ(::mkfifo(report.c_str(), 0600), 0);
    StartedProgram program(folder_, {"run", experiment, "--out", out});
    while (!fs::exists(at(out + "/result.json"))) std::this_thread::yield();
    program.send(SIGINT);
    program.wait_until_it_says("once more ends at once");
    std::atomic<bool> has_ended = false;
    std::thread reader([&] {
      const int pipe = ::open(report.c_str(), O_RDONLY | O_NONBLOCK);
      for (char buffer[4096]; !has_ended;) {
        if (::read(pipe, buffer, sizeof buffer) <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ::close(pipe);
    });
    Said said = program.wait();
    has_ended = true;
    reader.join();
    return said;
  }
};

/// Of SIGINT, SIGTERM and SIGKILL one.
class InterruptedBySignal : public InterruptedRun, public testing::WithParamInterface<int> {};

TEST_P(InterruptedBySignal, GoesOnAfterASignalAsIfThereHadBeenNone) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  const int signal = GetParam();
  for (int moment = 0; moment < moments(); ++moment) {
    const std::string out = "out" + std::to_string(signal) + "-" + std::to_string(moment);
    const std::string where = "signal " + std::to_string(signal) + ", moment " + std::to_string(moment);
    StartedProgram program(folder_, {"run", "run.toml", "--out", out});
    wait_a_part_of(seconds);
    program.interrupt(signal);
    const Said said = program.wait();
    EXPECT_THAT(said.code, AnyOf(0, 128 + signal)) << where << said.error;
    expect_words_that_fit(said, where);
    expect_nothing_corrupt(at(out), where);
    std::vector<std::string> next = printed_command(said);
    if (next.empty()) next = {"run", "run.toml", "--out", out};  // it had not begun, or nobody could print
    if (fs::exists(at(out) / "run.json")) {
      next = {"run", "--resume", out};
    }
    const Said resumed = tenon(next);
    EXPECT_EQ(resumed.code, 0) << where << resumed.error;
    expect_same_result("whole", out, where);
    expect_no_partials(at(out), where);
  }
}

TEST_P(InterruptedBySignal, ASweepKeepsItsFinishedCells) {
  const double seconds = seconds_of({"run", "sweep.toml", "--out", "whole"});
  const auto whole = json_of(at("whole/result.json"));
  const int signal = GetParam();
  for (int moment = 0; moment < moments(); ++moment) {
    const std::string out = "sweep" + std::to_string(signal) + "-" + std::to_string(moment);
    const std::string where = "signal " + std::to_string(signal) + ", moment " + std::to_string(moment);
    StartedProgram program(folder_, {"run", "sweep.toml", "--out", out, "-j", moment % 2 == 0 ? "1" : "2"});
    wait_a_part_of(seconds);
    program.interrupt(signal);
    const Said said = program.wait();
    EXPECT_THAT(said.code, AnyOf(0, 128 + signal)) << where << said.error;
    expect_words_that_fit(said, where);
    std::map<std::string, nlohmann::json> finished;
    std::error_code none;
    for (const auto& cell : fs::directory_iterator(at(out) / "cells", none)) {
      const auto result = json_of(cell.path() / "result.json");
      if (result.is_object() && result["status"] == "done") finished[cell.path()] = result["result"];
    }
    if (said.code == 128 + signal && signal != SIGKILL && fs::exists(at(out) / "run.json")) {
      EXPECT_THAT(said.error, HasSubstr("tenon run --resume " + out)) << where;
      EXPECT_THAT(said.out, AllOf(HasSubstr("allocator.name"), HasSubstr("results: " + out))) << where;
    }
    const bool has_begun = fs::exists(at(out) / "run.json");
    const Said resumed = tenon(has_begun ? std::vector<std::string>{"run", "--resume", out}
                                         : std::vector<std::string>{"run", "sweep.toml", "--out", out});
    EXPECT_EQ(resumed.code, 0) << where << resumed.error;
    for (const auto& [cell, result] : finished)
      EXPECT_EQ(json_of(fs::path(cell) / "result.json")["result"], result) << where << ": a finished cell is kept";
    expect_same_rows(whole, out, where);
    expect_nothing_corrupt(at(out), where);
    expect_no_partials(at(out), where);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, InterruptedBySignal, testing::Values(SIGINT, SIGTERM, SIGKILL), [](const auto& signal) {
  return signal.param == SIGINT ? "SIGINT" : signal.param == SIGTERM ? "SIGTERM" : "SIGKILL";
});

TEST_F(InterruptedRun, WhatTheAllocatorBrokeBeforeAnInterruptionIsNotForgotten) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=1000", "--out", "out"});
  program.wait_until_it_says("epoch 2/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  auto json = json_of(at("out/result.json"));
  json["disqualified"] = {"lost a request, in step 3", "allocator 'tiny' behind the layer 'route' lost a block"};
  folder_.write("out/result.json", json.dump());
  const Said said = tenon({"run", "--resume", "out"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("tenon: allocator 'caching' is disqualified: it lost a request, in step 3\n"),
                    HasSubstr("tenon: allocator 'tiny' behind the layer 'route' is disqualified: it lost a block\n")));
  EXPECT_EQ(json_of(at("out/result.json"))["status"], "disqualified");
  EXPECT_EQ(json_of(at("out/result.json"))["disqualified"], json["disqualified"]);
}

TEST_F(InterruptedRun, WhatTheAllocatorBrokeBeforeAKillIsNotForgottenAndTheRunSaysWhereItGoesOn) {
  const std::string faulty =
      fixture("faulty").string() + ":after=40,how=forgets";  // once, in the first steps of a process
  StartedProgram program(
      folder_, {"run", "run.toml", "train.epochs=100000", "allocator.name=\"" + faulty + "\"", "--out", "out"});
  while (!fs::exists(at("out/state.safetensors"))) std::this_thread::yield();
  program.send(SIGKILL);
  ASSERT_EQ(program.wait().code, 128 + SIGKILL);
  const auto kept = json_of(at("out/run.json"))["faults"];
  ASSERT_EQ(kept.size(), 1U);
  const std::string what = kept[0]["what"];
  EXPECT_THAT(what, HasSubstr(", in step "));
  StartedProgram again(folder_, {"run", "--resume", "out"});
  again.wait_until_it_says("epoch ");
  again.send(SIGINT);
  const Said said = again.wait();
  EXPECT_THAT(said.error, testing::ContainsRegex("going on after step [0-9]+ of 400000\n"));
  auto result = json_of(at("out/result.json"));
  ASSERT_EQ(result["disqualified"].size(), 2U) << "this part's too";
  EXPECT_EQ(result["disqualified"][0], what);
  // What the end of a part found is in its result alone, which goes when the next part begins.
  result["disqualified"].push_back("lost a block when it was destroyed");
  folder_.write("out/result.json", result.dump());
  StartedProgram third(folder_, {"run", "--resume", "out"});
  third.wait_until_it_says("epoch ");
  third.send(SIGKILL);
  third.wait();
  EXPECT_THAT(json_of(at("out/run.json"))["faults"].dump(), HasSubstr("lost a block when it was destroyed"));
}

TEST_F(InterruptedRun, EndsAfterTheStepWithItsFiguresAndTheCommandThatGoesOn) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=100000", "--out", "out dir"});
  program.wait_until_it_says("epoch 2/");
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130);
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("ending after this step; once more ends at once"), HasSubstr("SIGINT after step"),
                    HasSubstr("go on with\n  tenon run --resume 'out dir'\n")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("interrupted"), HasSubstr("peak reserved"), EndsWith("results: out dir\n")));
  const auto json = json_of(at("out dir/result.json"));
  EXPECT_EQ(json["status"], "interrupted");
  EXPECT_EQ(json["exit_code"], 130);
  EXPECT_TRUE(fs::exists(at("out dir/report.html")));
  EXPECT_TRUE(fs::exists(at("out dir/state.safetensors")));
}

TEST_F(InterruptedRun, ASignalAfterTheLastStepOrCellSaysThatAllIsFinished) {
  const Said run = interrupted_at_its_report("run.toml", "one");
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_THAT(run.error, AllOf(HasSubstr("the run has ended; writing its results"),
                               HasSubstr("SIGINT came when the last step was done: the run is finished"),
                               Not(HasSubstr("after this step"))));
  EXPECT_EQ(json_of(at("one/result.json"))["status"], "done");
  const Said sweep = interrupted_at_its_report("sweep.toml", "three");
  EXPECT_EQ(sweep.code, 0) << sweep.error;
  EXPECT_THAT(sweep.error, AllOf(HasSubstr("the last cell has ended; writing the results"),
                                 HasSubstr("SIGINT came when the last cell was done: nothing was cut short"),
                                 Not(HasSubstr("--resume"))));
  EXPECT_EQ(json_of(at("three/run.json"))["finished"], true);
}

TEST_F(InterruptedRun, ASecondSignalEndsAtOnceAndTheLastStateIsKept) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=100000", "--out", "out"});
  while (!fs::exists(at("out/state.safetensors"))) std::this_thread::yield();
  program.interrupt(SIGINT);
  program.interrupt(SIGTERM);
  const Said said = program.wait();
  EXPECT_THAT(said.code, AnyOf(128 + SIGTERM, 128 + SIGINT)) << "the second may come when the run has ended already";
  expect_nothing_corrupt(at("out"), "ended at once");
  StartedProgram again(folder_, {"run", "--resume", "out"});
  again.wait_until_it_says("epoch ");
  again.interrupt(SIGINT);
  EXPECT_EQ(again.wait().code, 130);
}

TEST_F(InterruptedRun, SecondsOfAResumedRunAreThoseOfAllItsParts) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=400", "--out", "out"});
  program.wait_until_it_says("epoch 2/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  const auto first = json_of(at("out/result.json"));
  EXPECT_EQ(first["earlier_seconds"], 0);
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  const auto whole = json_of(at("out/result.json"));
  EXPECT_EQ(whole["earlier_seconds"], first["seconds"]);
  EXPECT_GT(whole["seconds"].get<double>() - whole["earlier_seconds"].get<double>(), 0);
  EXPECT_GE(whole["seconds"], whole["result"]["seconds"]) << "which are of the training alone, of all parts too";
}

// Where a process with threads adopts the orphan, the kernel says more than once that the parent is gone.
TEST_F(InterruptedRun, ACellThatIsToldTwiceThatItsSweepIsGoneEndsAfterItsStep) {
  StartedProgram cell(folder_, {"run", "run.toml", "train.epochs=100000", "--no-sweep", "--out", "out", "--label",
                                "[1/1] ", "--parent", std::to_string(::getpid())});
  while (!fs::exists(at("out/state.safetensors"))) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) cell.send(SIGUSR1);
  const Said said = cell.wait();
  EXPECT_EQ(said.code, 143) << said.error;
  EXPECT_EQ(json_of(at("out/result.json"))["status"], "interrupted");
  expect_no_partials(at("out"), "told twice");
}

TEST_F(InterruptedRun, ACellThatIsKilledCostsNoOtherOne) {
  const double seconds = seconds_of({"run", "sweep.toml", "--out", "whole"});
  const auto whole = json_of(at("whole/result.json"));
  for (int moment = 0; moment < moments(2); ++moment) {
    const std::string out = "killed" + std::to_string(moment);
    StartedProgram sweep(folder_, {"run", "sweep.toml", "--out", out, "-j", moment % 2 == 0 ? "1" : "2"});
    wait_a_part_of(seconds);
    for (const pid_t child : grandchildren()) {
      ::kill(child, SIGKILL);
      break;
    }
    const Said said = sweep.wait();
    EXPECT_THAT(said.code, AnyOf(0, 1)) << out << said.error;
    expect_nothing_corrupt(at(out), out);
    const auto rows = json_of(at(out) / "result.json")["rows"];
    int done = 0;
    for (const auto& row : rows) done += row["status"] == "done" ? 1 : 0;
    EXPECT_GE(done, 2) << out;
    if (done == 3) continue;  // it came before the first or after the last
    EXPECT_THAT(said.out, HasSubstr("SIGKILL")) << out;
    EXPECT_THAT(said.error, HasSubstr("2 of 3 cells are finished")) << out;
    const Said resumed = tenon(printed_command(said));
    EXPECT_EQ(resumed.code, 0) << out << resumed.error;
    expect_same_rows(whole, out, out);
    expect_no_partials(at(out), out);
  }
}

/// Of two in one folder the first has it; the other is refused while it does.
void expect_one_at_a_time(const Said& first, const Said& second, const std::string& out) {
  for (const Said* said : {&first, &second}) {
    if (said->code == 0) continue;
    EXPECT_EQ(said->code, 2) << said->error;
    EXPECT_THAT(said->error, AllOf(HasSubstr("writes to " + out), HasSubstr("--out"))) << out;
  }
  EXPECT_TRUE(first.code == 0 || second.code == 0) << out;
}

TEST_F(InterruptedRun, OfTwoSweepsAtOnceInOneFolderOneIsRefused) {
  const double seconds = seconds_of({"run", "sweep.toml", "--out", "whole"});
  const auto whole = json_of(at("whole/result.json"));
  for (int moment = 0; moment < moments(2); ++moment) {
    const std::string out = "shared" + std::to_string(moment);
    StartedProgram one(folder_, {"run", "sweep.toml", "--out", out});
    wait_a_part_of(seconds / 2);
    StartedProgram other(folder_, {"run", "sweep.toml", "--out", out});
    expect_one_at_a_time(one.wait(), other.wait(), out);
    expect_same_rows(whole, out, out);
    expect_no_partials(at(out), out);
  }
}

TEST_F(InterruptedRun, NobodyRunsAmongTheCellsOfASweepThatRuns) {
  StartedProgram sweep(folder_, {"run", "sweep.toml", "train.epochs=100000", "--out", "out"});
  while (!fs::exists(at("out/cells/001-direct/run.json"))) std::this_thread::yield();
  fs::create_symlink("out/cells", at("link"));
  for (const char* name : {"out/cells/mine", "out/cells/003-expandable", "out/cells/", "link/mine/deeper"}) {
    const Said said = tenon({"run", "run.toml", "--out", name});
    EXPECT_EQ(said.code, 2) << name;
    EXPECT_THAT(said.error,
                AllOf(HasSubstr("runs the sweep in "), HasSubstr("among its cells; choose another folder")));
    EXPECT_EQ(fs::exists(at(name)), std::string(name) == "out/cells/") << name;
  }
  EXPECT_THAT(tenon({"run", "--resume", "out/cells/001-direct"}).error, HasSubstr("among its cells"));
  sweep.interrupt(SIGINT);
  EXPECT_EQ(sweep.wait().code, 130);
  EXPECT_EQ(tenon({"run", "run.toml", "--out", "out/cells/mine"}).code, 0) << "nobody writes there now";
}

TEST_F(InterruptedRun, OfTwoAtOnceInOneFolderOneIsRefused) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  for (int moment = 0; moment < moments(); ++moment) {
    const std::string out = "shared" + std::to_string(moment);
    StartedProgram one(folder_, {"run", "run.toml", "--record", "trace", "--out", out});
    wait_a_part_of(seconds / 2);
    StartedProgram other(folder_, {"run", "run.toml", "--record", "trace", "--out", out});
    expect_one_at_a_time(one.wait(), other.wait(), out);
    expect_same_result("whole", out, out);
    EXPECT_EQ(tenon({"trace", "info", out + "/memory.tenon"}).code, 0) << out << ": the recording is of one run";
  }
}

TEST_F(InterruptedRun, AFullDiskCostsFilesAndNoFigures) {
  tenon({"run", "run.toml", "--out", "whole"});
  for (int moment = 0; moment < 2 * moments(); ++moment) {
    const std::string out = "full" + std::to_string(moment);
    // A limit on the size of each file, in units of 512 bytes, stands for the disk: any of them may be the one too
    // large.
    const int blocks = std::uniform_int_distribution<>(1, 240)(random_);
    const std::string where = std::to_string(blocks) + " blocks";
    StartedProgram program(folder_, {"run", "run.toml", "--out", out}, {}, "/dev/null",
                           "ulimit -f " + std::to_string(blocks));
    const Said said = program.wait();
    expect_nothing_corrupt(at(out), where);
    expect_no_partials(at(out), where);
    EXPECT_THAT(said.code, AnyOf(0, 1)) << where << said.error;
    if (said.code == 1) {
      EXPECT_THAT(said.error, HasSubstr("File too large")) << where;
    }
    if (fs::exists(at(out) / "run.json")) {
      EXPECT_THAT(said.out, HasSubstr("peak reserved")) << where << said.error;
    }
  }
}

}  // namespace
}  // namespace tenon::test
