// Runs and sweeps whose output folder somebody removes in the middle, at moments that a seed chooses: the figures are
// printed, what was finished is written again or run again, and nothing is half-written.
#include "cli/interrupted.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class RemovedFolder : public InterruptedProgram {
 protected:
  void remove(const std::string& out, bool at_once) const {
    std::error_code problem;
    if (at_once) {
      fs::rename(at(out), at(out + "-gone"), problem);
    } else {
      fs::remove_all(at(out), problem);  // file by file: what is written meanwhile may stay
    }
  }

  /// Without figures the program has to say that it found no folder to write to.
  static bool went_while_it_was_made(const Said& said) {
    if (!said.out.empty()) return false;
    EXPECT_THAT(said.error, AnyOf(HasSubstr("cannot make"), HasSubstr("cannot write"))) << "it went while it was made";
    return true;
  }
};

TEST_F(RemovedFolder, AFolderThatIsRemovedUnderItComesBackWithTheResult) {
  const double seconds = seconds_of({"run", "run.toml", "--out", "whole"});
  for (int moment = 0; moment < 2 * moments(); ++moment) {
    const std::string out = "removed" + std::to_string(moment);
    StartedProgram program(folder_, {"run", "run.toml", "--out", out});
    wait_a_part_of(seconds);
    const bool goes_at_once = moment % 2 == 0;
    remove(out, goes_at_once);
    const Said said = program.wait();
    if (went_while_it_was_made(said)) continue;
    EXPECT_THAT(said.out, HasSubstr("peak reserved")) << "the figures are printed" << said.error;
    expect_nothing_corrupt(at(out), out);
    const bool is_there = fs::exists(at(out));  // else it went when all was written
    if (said.code == 0 && is_there && (goes_at_once || fs::exists(at(out) / "result.json")))
      expect_same_result("whole", out, out);
  }
}

TEST_F(RemovedFolder, ASweepWhoseFolderIsRemovedHasItsTableAndItsCellsAgain) {
  const double seconds = seconds_of({"run", "sweep.toml", "--out", "whole"});
  const auto whole = json_of(at("whole/result.json"));
  for (int moment = 0; moment < 2 * moments(2); ++moment) {
    const std::string out = "removed" + std::to_string(moment);
    StartedProgram program(folder_, {"run", "sweep.toml", "--out", out, "-j", moment % 4 < 2 ? "1" : "2"});
    wait_a_part_of(seconds);
    remove(out, moment % 2 == 0);
    const Said said = program.wait();
    if (went_while_it_was_made(said)) continue;
    EXPECT_THAT(said.out, AllOf(HasSubstr("peak reserved"), HasSubstr("results: " + out))) << out << said.error;
    EXPECT_THAT(said.code, AnyOf(0, 1, 2)) << out << said.error;
    expect_nothing_corrupt(at(out), out);
    if (!fs::exists(at(out))) continue;  // it went when all was written
    std::vector<std::string> next = printed_command(said);
    if (said.code == 0 && next.empty() && fs::exists(at(out) / "run.json")) next = {"run", "--resume", out};
    if (next.empty()) continue;  // it went, file by file, after the end
    const Said resumed = tenon(next);
    EXPECT_EQ(resumed.code, 0) << out << said.error << resumed.error;
    expect_same_rows(whole, out, out);
    expect_no_partials(at(out), out);
  }
}

TEST_F(RemovedFolder, ACellThatWasFinishedWhenTheFolderWentIsThereAgain) {
  StartedProgram program(folder_, {"run", "sweep.toml", "--out", "out"});
  program.wait_until_it_says("[2/3] allocator.name");
  fs::rename(at("out"), at("gone"));
  const Said said = program.wait();
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("out was removed while the sweep ran; the results of 1 finished cell are written"));
  for (const char* name : {"result.json", "report.html", "config.resolved.toml", "run.json"})
    EXPECT_TRUE(fs::exists(at("out/cells/001-direct") / name)) << name;
  const Said resumed = tenon({"run", "--resume", "out"});
  EXPECT_EQ(resumed.code, 0) << resumed.error;
  EXPECT_THAT(resumed.error, AllOf(HasSubstr("[1/3] finished before"), HasSubstr("[3/3] finished before")));
}

TEST_F(RemovedFolder, RecordingsThatWentWithTheFolderAreMadeAgain) {
  StartedProgram program(folder_, {"run", "sweep.toml", "--record", "trace", "--out", "out"});
  program.wait_until_it_says("[2/3] allocator.name");
  fs::rename(at("out"), at("gone"));
  const Said said = program.wait();
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_THAT(said.out, HasSubstr("losses: equal to the last bit in 3 cells")) << "the figures are printed";
  EXPECT_THAT(said.error, HasSubstr("with the recordings of"));
  ASSERT_EQ(printed_command(said), (std::vector<std::string>{"run", "--resume", "out"}));
  EXPECT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  for (const char* cell : {"001-direct", "002-caching", "003-expandable"})
    EXPECT_TRUE(fs::exists(at("out/cells") / cell / "memory.tenon")) << cell;
}

}  // namespace
}  // namespace tenon::test
