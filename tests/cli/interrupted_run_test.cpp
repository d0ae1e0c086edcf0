// Runs and sweeps that are ended in the middle, at moments that a seed chooses: nothing is corrupt, nothing that was
// finished is lost, the command that is printed goes on, and the whole equals a run that nobody disturbed.
//
// TENON_TEST_MOMENTS says at how many moments; `./dev test --full` takes twenty.
#include "cli/program.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <sstream>
#include <thread>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr unsigned kSeed = 20261122;

int moments() {
  const char* const wanted = std::getenv("TENON_TEST_MOMENTS");
  return wanted == nullptr ? 3 : std::atoi(wanted);
}

class InterruptedRun : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("run.toml", kRun);
    folder_.write("sweep.toml",
                  kRun + std::string("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\", \"expandable\"]\n"));
    RecordProperty("seed", static_cast<int>(kSeed));
  }

  fs::path at(const std::string& name) const { return folder_.path() / name; }
  nlohmann::json json_of(const fs::path& path) const {
    return nlohmann::json::parse(read_bytes(path), nullptr, /*allow_exceptions=*/false);
  }
  double seconds_of(const std::vector<std::string>& words) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(tenon(words).code, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  /// Lets a part of `seconds` pass; which one says the seed. The moment is what varies: no outcome depends on it.
  void wait_a_part_of(double seconds) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds * std::uniform_real_distribution<>(0, 1)(random_)));
  }

  /// Whatever has its final name is whole.
  void expect_nothing_corrupt(const fs::path& folder, const std::string& where) const {
    std::error_code problem;
    for (const auto& entry : fs::recursive_directory_iterator(folder, problem)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".json") {
        EXPECT_TRUE(json_of(entry.path()).is_object()) << where << ": " << entry.path();
      }
      if (name == "report.html") {
        EXPECT_THAT(read_bytes(entry.path()), HasSubstr("</html>")) << where;
      }
      if (name == "config.resolved.toml") {
        EXPECT_THAT(read_bytes(entry.path()), HasSubstr("replay_ooms")) << where;
      }
    }
  }
  void expect_no_partials(const fs::path& folder, const std::string& where) const {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".partial-"))) << where;
  }
  /// The words after "tenon" of the command that was printed as the way on; empty where none was.
  static std::vector<std::string> printed_command(const Said& said) {
    const std::string mark = "\n  tenon ";
    const std::size_t begin = said.error.rfind(mark);
    if (begin == std::string::npos) return {};
    std::istringstream line(
        said.error.substr(begin + mark.size(), said.error.find('\n', begin + mark.size()) - begin - mark.size()));
    return {std::istream_iterator<std::string>(line), {}};
  }
  void expect_same_result(const std::string& whole, const std::string& resumed, const std::string& where) const {
    const auto a = json_of(at(whole) / "result.json"), b = json_of(at(resumed) / "result.json");
    ASSERT_TRUE(b.is_object()) << where;
    EXPECT_EQ(b["status"], "done") << where;
    EXPECT_EQ(a["result"]["losses"], b["result"]["losses"]) << where;
    EXPECT_EQ(a["result"]["steps"], b["result"]["steps"]) << where;
    EXPECT_EQ(a["result"]["test_accuracy"], b["result"]["test_accuracy"]) << where;
    EXPECT_EQ(a["result"]["epochs"].size(), b["result"]["epochs"].size()) << where;
    EXPECT_EQ(a["memory"]["peak_requested_bytes"], b["memory"]["peak_requested_bytes"]) << where;
    EXPECT_FALSE(fs::exists(at(resumed) / "state.safetensors")) << where << ": a finished run needs none";
  }

  static constexpr char kRun[] =
      "[data]\npath = \"data\"\n[model]\nhidden = 32\ndropout = 0.1\n[train]\nepochs = 60\nbatch_size = 16\n"
      "test_batch_size = 16\nthreads = 1\nsave_every = 50\n";
  std::mt19937 random_{kSeed};
};

TEST_F(InterruptedRun, GoesOnAfterASignalAsIfThereHadBeenNone) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    for (int moment = 0; moment < moments(); ++moment) {
      const std::string out = "out" + std::to_string(signal) + "-" + std::to_string(moment);
      const std::string where = "signal " + std::to_string(signal) + ", moment " + std::to_string(moment);
      StartedProgram program(folder_, {"run", "run.toml", "--out", out});
      wait_a_part_of(seconds);
      program.interrupt(signal);
      const Said said = program.wait();
      EXPECT_THAT(said.code, AnyOf(0, 128 + signal)) << where << said.error;
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
}

TEST_F(InterruptedRun, EndsAfterTheStepWithItsFiguresAndTheCommandThatGoesOn) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=100000", "--out", "out dir"});
  while (program.said().find("epoch 2/") == std::string::npos) std::this_thread::yield();
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

TEST_F(InterruptedRun, ASecondSignalEndsAtOnceAndTheLastStateIsKept) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=100000", "--out", "out"});
  while (!fs::exists(at("out/state.safetensors"))) std::this_thread::yield();
  program.interrupt(SIGINT);
  program.interrupt(SIGTERM);
  const Said said = program.wait();
  EXPECT_THAT(said.code, AnyOf(128 + SIGTERM, 128 + SIGINT)) << "the second may come when the run has ended already";
  expect_nothing_corrupt(at("out"), "ended at once");
  StartedProgram again(folder_, {"run", "--resume", "out"});
  while (again.said().find("epoch ") == std::string::npos) std::this_thread::yield();
  again.interrupt(SIGINT);
  EXPECT_EQ(again.wait().code, 130);
}

TEST_F(InterruptedRun, ASweepKeepsItsFinishedCells) {
  const double seconds = seconds_of({"run", "sweep.toml", "--out", "whole"});
  const auto whole = json_of(at("whole/result.json"));
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    for (int moment = 0; moment < moments(); ++moment) {
      const std::string out = "sweep" + std::to_string(signal) + "-" + std::to_string(moment);
      const std::string where = "signal " + std::to_string(signal) + ", moment " + std::to_string(moment);
      StartedProgram program(folder_, {"run", "sweep.toml", "--out", out, "-j", moment % 2 == 0 ? "1" : "2"});
      wait_a_part_of(seconds);
      program.interrupt(signal);
      const Said said = program.wait();
      EXPECT_THAT(said.code, AnyOf(0, 128 + signal)) << where << said.error;
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
      const auto rows = json_of(at(out) / "result.json")["rows"];
      ASSERT_EQ(rows.size(), 3U) << where;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(rows[i]["losses_fnv1a64"], whole["rows"][i]["losses_fnv1a64"]) << where;
      expect_nothing_corrupt(at(out), where);
      expect_no_partials(at(out), where);
    }
  }
}

TEST_F(InterruptedRun, AFolderThatIsRemovedUnderItComesBackWithTheResult) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  for (int moment = 0; moment < moments(); ++moment) {
    const std::string out = "removed" + std::to_string(moment);
    StartedProgram program(folder_, {"run", "run.toml", "--out", out});
    wait_a_part_of(seconds);
    std::error_code ignored;
    fs::remove_all(at(out), ignored);
    const Said said = program.wait();
    if (said.out.empty()) {
      EXPECT_THAT(said.error, AnyOf(HasSubstr("cannot make"), HasSubstr("cannot write")))
          << "it went while it was made";
      continue;
    }
    EXPECT_THAT(said.out, HasSubstr("peak reserved")) << "the figures are printed" << said.error;
    expect_nothing_corrupt(at(out), out);
    if (said.code == 0 && fs::exists(at(out))) expect_same_result("whole", out, out);
  }
}

TEST_F(InterruptedRun, OfTwoAtOnceInOneFolderOneIsRefused) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  for (int moment = 0; moment < moments(); ++moment) {
    const std::string out = "shared" + std::to_string(moment);
    StartedProgram one(folder_, {"run", "run.toml", "--record", "trace", "--out", out});
    wait_a_part_of(seconds / 2);
    StartedProgram other(folder_, {"run", "run.toml", "--record", "trace", "--out", out});
    const Said first = one.wait(), second = other.wait();
    for (const Said* said : {&first, &second}) {
      if (said->code == 0) continue;
      EXPECT_EQ(said->code, 2) << said->error;
      EXPECT_THAT(said->error, AllOf(HasSubstr("writes to " + out), HasSubstr("--out"))) << out;
    }
    EXPECT_TRUE(first.code == 0 || second.code == 0) << out;
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
