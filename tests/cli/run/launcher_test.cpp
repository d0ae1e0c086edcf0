// Sweeps whose cells run elsewhere: over mpirun, and as a job array of a Slurm that the test starts.
#include "cli/program.h"
#include "support/free_port.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

bool has_program(const std::string& name) {
  return std::system(("PATH=$PATH:/usr/sbin:/sbin command -v " + name + " >/dev/null").c_str()) == 0;
}

/// A cluster of one node as long as it lives.
class LocalSlurm {
 public:
  LocalSlurm() : works_(script("start " + folder() + " " + std::to_string(free_port())) == 0) {}
  ~LocalSlurm() { EXPECT_EQ(script("stop " + folder()), 0); }
  LocalSlurm(const LocalSlurm&) = delete;
  bool works() const { return works_; }
  std::string folder() const { return (folder_.path() / "slurm").string(); }

 private:
  static int script(const std::string& words) {
    return std::system((TENON_SOURCE_DIR "/tests/support/local_slurm.sh " + words).c_str());
  }

  Folder folder_;
  bool works_ = false;
};

/// Twelve cells, of which the seventh has no memory.
std::string twelve_cells(const std::string& limit = "4KiB") {
  std::string rows = "[allocator]\nlayers = [\"limit\"]\nlimit.bytes = \"64MiB\"\n[sweep.rows]\n";
  for (int i = 1; i <= 12; ++i) {
    rows += "\"row " + std::to_string(i) + "\" = { \"train.seed\" = " + std::to_string(i);
    if (i == 7) rows += ", \"allocator.limit.bytes\" = \"" + limit + "\"";
    rows += " }\n";
  }
  return experiment(rows);
}

class LaunchedSweep : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("twelve.toml", twelve_cells());
  }
  /// One table, of which the seventh row failed, and which goes on with that one alone.
  void expect_one_failure_that_is_made_good(const std::vector<std::string>& launcher) {
    const auto with = [&](std::vector<std::string> words) {
      words.insert(words.end(), launcher.begin(), launcher.end());
      return tenon(words, variables_);
    };
    const Said said = with({"run", "twelve.toml", "--out", "res", "--format", "json"});
    EXPECT_EQ(said.code, 4) << said.error;
    const auto rows = parse_json(said.out)["rows"];
    ASSERT_EQ(rows.size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(rows[i]["row"], "row " + std::to_string(i + 1));
      EXPECT_EQ(rows[i]["status"], i == 6 ? "out_of_memory" : "done") << said.error;
    }
    EXPECT_THAT(rows[6]["error"].get<std::string>(), HasSubstr("limit of 4.00 KiB"));
    EXPECT_THAT(said.error, HasSubstr("12 cells"));
    // Alone, in the same program, a cell gives the same losses.
    const Said here = tenon({"run", "twelve.toml", "--out", "here", "--format", "json"});
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(parse_json(here.out)["rows"][i]["losses_fnv1a64"], rows[i]["losses_fnv1a64"]) << i;
    fs::remove(folder_.path() / "res/cells" / cell_of("res", 7) / "result.json");
    const Said again = with({"run", "--resume", "res", "--format", "json"});
    EXPECT_THAT(again.error, AllOf(testing::ContainsRegex(": 1 cell([^s]|$)"), HasSubstr("[1/12] finished before")));
    EXPECT_EQ(parse_json(again.out)["rows"][6]["status"], "out_of_memory");
  }
  /// The folder of a cell, from 1.
  std::string cell_of(const std::string& out, int number) const {
    char prefix[8];
    std::snprintf(prefix, sizeof prefix, "%03d", number);
    for (const auto& entry : fs::directory_iterator(folder_.path() / out / "cells")) {
      if (entry.path().filename().string().starts_with(prefix)) return entry.path().filename().string();
    }
    ADD_FAILURE() << "no cell " << number;
    return {};
  }
  std::map<std::string, std::string> variables_{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                                {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
};

TEST_F(LaunchedSweep, OverMpirunIsOneTableAndGoesOnWithWhatFailed) {
  if (!has_program("mpirun")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  expect_one_failure_that_is_made_good({"--launcher", "mpi", "--jobs", "2", "--launcher-args", "--oversubscribe"});
}

TEST_F(LaunchedSweep, OnSlurmIsOneTableAndGoesOnWithWhatFailed) {
  if (!has_program("slurmctld") || !has_program("slurmd") || !has_program("munged"))
    GTEST_SKIP() << "slurmctld, slurmd and munged are not all installed (slurm-wlm)";
  if (::geteuid() != 0) GTEST_SKIP() << "a slurmd of the test's own needs root";
  const LocalSlurm slurm;
  if (!slurm.works()) GTEST_SKIP() << "no Slurm starts on this machine; its logs are above";
  variables_["SLURM_CONF"] = slurm.folder() + "/slurm.conf";
  expect_one_failure_that_is_made_good({"--launcher", "slurm"});
}

TEST_F(LaunchedSweep, IsStoppedByAnInterruptAndLeavesTheRestUndone) {
  if (!has_program("mpirun")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  std::string text = twelve_cells("64MiB");
  text.replace(text.find("epochs = 2"), 10, "epochs = 1000000");
  folder_.write("long.toml", text);
  StartedProgram program(folder_,
                         {"run", "long.toml", "--out", "res", "--launcher", "mpi", "--jobs", "1", "--launcher-args",
                          "--oversubscribe", "--format", "json"},
                         variables_);
  const fs::path first = folder_.path() / "res/launch/claimed-0";
  while (!fs::exists(first)) std::this_thread::yield();
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, HasSubstr("tenon run --resume res --launcher mpi --launcher-args --oversubscribe\n"));
  const auto rows = parse_json(said.out)["rows"];
  EXPECT_EQ(rows[11]["status"], "not run");
  EXPECT_FALSE(fs::exists(folder_.path() / "res/launch/claimed-11"));
}

TEST_F(LaunchedSweep, WhoseEngineRefusesOrDiesSaysWhatItSaid) {
  if (!has_program("mpirun")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  const Said said = tenon({"run", "twelve.toml", "--out", "res", "--launcher", "mpi", "--launcher-args",
                           "--no-such-option-of-mpirun", "--format", "json"},
                          variables_);
  EXPECT_EQ(said.code, 1);
  const auto rows = parse_json(said.out)["rows"];
  for (const auto& row : rows) {
    EXPECT_EQ(row["status"], "killed");
    EXPECT_THAT(row["error"].get<std::string>(), HasSubstr("mpirun ended with code"));
  }
}

TEST_F(LaunchedSweep, NeedsASweepAnEngineAndItsProgram) {
  const Said one = tenon({"run", "exp.toml", "--launcher", "mpi"});
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.error, HasSubstr("--launcher runs the cells of a sweep elsewhere, and this is one run"));
  const Said unknown = tenon({"run", "twelve.toml", "--launcher", "slrum"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.error, AllOf(HasSubstr("unknown launcher 'slrum'"), HasSubstr("did you mean slurm?")));
  const Said missing = tenon({"run", "twelve.toml", "--out", "res", "--launcher", "slurm"}, {{"PATH", "/nowhere"}});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.error, HasSubstr("sbatch: there is no such program in PATH"));
}

}  // namespace
}  // namespace tenon::test
