// What engines are asked, and how their answers are read: programs of their names stand in for them. The files that a
// sweep and its workers share.
#include "support/message_of.h"
#include "support/scratch_folder.h"

#include <tenon/cli/launch/cell_list.h>
#include <tenon/cli/launch/command.h>
#include <tenon/cli/launch/follow_cells.h>
#include <tenon/cli/launch/launcher.h>
#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Programs that stand before all others in PATH, and a list of cells.
class Launchers : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    folder_ = fs::path(test::scratch_folder()) / ("launch-" + std::to_string(++number));
    fs::create_directories(folder_ / "bin");
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  /// A program that writes its words to NAME.words, a line each, and then does this.
  void have(const std::string& name, const std::string& does) {
    const fs::path file = folder_ / "bin" / name;
    std::ofstream(file) << "#!/bin/sh\nprintf '%s\\n' \"$@\" > '" << (folder_ / name).string() << ".words'\n"
                        << does << "\n";
    ::chmod(file.c_str(), 0700);
  }
  std::string words_to(const std::string& name) const { return text_of(folder_ / (name + ".words")); }
  /// Slurm's, with a job that has number 17.
  std::unique_ptr<Launcher> started_slurm() {
    have("sbatch", "echo 17");
    std::unique_ptr<Launcher> slurm = make_launcher("slurm", {});
    EXPECT_EQ(slurm->start(CellList(folder_), {0, 1, 2}, 0), "Slurm job 17");
    return slurm;
  }
  static std::vector<std::string> told(const std::vector<LostCell>& cells) {
    std::vector<std::string> lines;
    for (const LostCell& cell : cells) lines.push_back(std::to_string(cell.index) + ": " + cell.why);
    return lines;
  }
  /// The cells that a launcher has lost, once it has.
  static std::vector<std::string> lost_at_last(Launcher& launcher, const std::vector<std::size_t>& open) {
    while (true) {
      if (const std::vector<LostCell> lost = launcher.lost(open); !lost.empty()) return told(lost);
      std::this_thread::yield();
    }
  }

  const std::string path_ = std::getenv("PATH");
  const std::string program_ = fs::read_symlink("/proc/self/exe").string();
  fs::path folder_;
};

TEST_F(Launchers, AreKnownByName) {
  EXPECT_THAT(launcher_names(), ElementsAre("slurm", "mpi"));
  EXPECT_EQ(problem_of_launcher("mpi"), "");
  EXPECT_EQ(problem_of_launcher("slrum"), "unknown launcher 'slrum'; did you mean slurm?");
  EXPECT_EQ(problem_of_launcher("kubernetes"), "unknown launcher 'kubernetes'; known: slurm, mpi");
}

TEST_F(Launchers, SlurmGetsAnArrayOfTheCellsAndAScriptForEach) {
  have("sbatch", "echo '17;north'");
  const fs::path cells = folder_ / "o'clock";
  fs::create_directory(cells);
  const std::unique_ptr<Launcher> slurm = make_launcher("slurm", {"--partition=gpu", "--mem=4G"});
  EXPECT_EQ(slurm->start(CellList(cells), {0, 2, 5}, 2), "Slurm job 17") << "the cluster is not part of it";
  EXPECT_EQ(words_to("sbatch"), "--parsable\n--job-name=tenon-sweep\n--output=" + cells.string() +
                                    "/cell-%a.log\n--partition=gpu\n--mem=4G\n--array=0,2,5%2\n" + cells.string() +
                                    "/job.sh\n");
  EXPECT_EQ(text_of(cells / "job.sh"), "#!/bin/sh\nexec '" + program_ + "' run --work-in '" + folder_.string() +
                                           "/o'\\''clock' --work-on \"$SLURM_ARRAY_TASK_ID\"\n");
  EXPECT_EQ(slurm->messages_of(5), (cells / "cell-5.log").string());
  slurm->start(CellList(cells), {3}, 0);
  EXPECT_THAT(words_to("sbatch"), HasSubstr("\n--array=3\n")) << "as many as there is room for";
}

TEST_F(Launchers, SlurmsJobNumberIsItsLastLine) {
  have("sbatch", "echo 'sbatch: beware'; echo 4711; echo");
  EXPECT_EQ(make_launcher("slurm", {})->start(CellList(folder_), {0}, 0), "Slurm job 4711");
}

TEST_F(Launchers, ARefusalOfSlurmIsToldAsItSaysIt) {
  const auto refusal = [&](const std::string& does) {
    have("sbatch", does);
    return message_of([&] { make_launcher("slurm", {})->start(CellList(folder_), {0}, 0); });
  };
  EXPECT_EQ(refusal("echo 'no such partition  '; exit 1"), "sbatch refused the sweep: no such partition");
  EXPECT_EQ(refusal("echo 17 >&2; exit 2"), "sbatch refused the sweep: 17");
  EXPECT_EQ(refusal("kill -9 $$"), "sbatch refused the sweep: ");
  EXPECT_EQ(refusal("echo Submitted batch job 17"), "sbatch gave no job number: Submitted batch job 17");
  EXPECT_EQ(refusal(":"), "sbatch gave no job number: ");
}

TEST_F(Launchers, CellsThatSlurmNeitherRunsNorKeepsWaitingAreLost) {
  const std::unique_ptr<Launcher> slurm = started_slurm();
  have("squeue", "echo '0 RUNNING'; echo '1 PENDING'; echo '2 TIMEOUT'; echo odd; echo '3 COMPLETED'");
  have("scontrol",
       "case $4 in 17_2) echo 'JobId=19 JobState=TIMEOUT Reason=none' ;; 17_3) echo 'JobId=20 Reason=none' ;; *) echo "
       "JobState=GONE; exit 1 ;; esac");
  EXPECT_THAT(told(slurm->lost({0, 1, 2, 3, 9})),
              ElementsAre("2: Slurm says TIMEOUT", "3: Slurm says nothing of it any more",
                          "9: Slurm says nothing of it any more"));
  EXPECT_EQ(words_to("squeue"), "--noheader\n--array\n--jobs=17\n--format=%K %T\n");
  EXPECT_EQ(words_to("scontrol"), "--oneliner\nshow\njob\n17_9\n");
}

TEST_F(Launchers, WhatSlurmIsAboutToRunOrToEndIsNotLost) {
  const std::unique_ptr<Launcher> slurm = started_slurm();
  have("scontrol", "exit 1");
  for (const char* state :
       {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "STOPPED", "RESIZING"}) {
    have("squeue", std::string("echo '4 ") + state + "'");
    EXPECT_THAT(slurm->lost({4}), IsEmpty()) << state;
  }
  for (const char* state : {"FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"}) {
    have("squeue", std::string("echo '4 ") + state + "'");
    EXPECT_EQ(slurm->lost({4}).size(), 1U) << state;
  }
}

TEST_F(Launchers, ASlurmThatDoesNotAnswerIsAskedAgainAndOneThatForgotTheJobHasLostAll) {
  const std::unique_ptr<Launcher> slurm = started_slurm();
  have("scontrol", "exit 1");
  have("squeue", "echo 'Socket timed out'; exit 1");
  EXPECT_THAT(slurm->lost({0, 1}), IsEmpty());
  have("squeue", "echo '0 RUNNING'; echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(slurm->lost({0, 1}).size(), 2U);
}

TEST_F(Launchers, StoppingLeavesWhatSlurmRuns) {
  const std::unique_ptr<Launcher> slurm = started_slurm();
  have("scancel", ":");
  slurm->stop();
  EXPECT_EQ(words_to("scancel"), "--state=PENDING\n17\n");
}

TEST_F(Launchers, MpirunStartsAWorkerForACellAtMost) {
  const auto words = [&](std::vector<std::size_t> cells, unsigned at_a_time) {
    have("mpirun", "exit 3");
    const std::unique_ptr<Launcher> mpi = make_launcher("mpi", {"--oversubscribe"});
    EXPECT_EQ(mpi->start(CellList(folder_), cells, at_a_time), "mpirun");
    EXPECT_THAT(lost_at_last(*mpi, {4, 7}),
                ElementsAre("4: mpirun ended with code 3 before it", "7: mpirun ended with code 3 before it"));
    EXPECT_EQ(told(mpi->lost({7})), std::vector<std::string>{"7: mpirun ended with code 3 before it"}) << "for good";
    EXPECT_EQ(mpi->messages_of(4), "");
    return words_to("mpirun");
  };
  const std::string command = "--oversubscribe\n" + program_ + "\nrun\n--work-in\n" + folder_.string() + "\n";
  EXPECT_EQ(words({0, 1, 2}, 2), "-n\n2\n" + command);
  EXPECT_EQ(words({0, 1, 2}, 8), "-n\n3\n" + command);
  EXPECT_EQ(words({0, 1, 2}, 0), command) << "as many as it has slots";
}

TEST_F(Launchers, AnMpirunThatASignalEndsIsToldSo) {
  have("mpirun", "kill -9 $$");
  const std::unique_ptr<Launcher> mpi = make_launcher("mpi", {});
  mpi->start(CellList(folder_), {0}, 1);
  EXPECT_THAT(lost_at_last(*mpi, {0}), ElementsAre("0: mpirun was ended by SIGKILL"));
}

TEST_F(Launchers, AnMpirunThatIsNotNeededAnyMoreIsEndedWithItsWorkers) {
  have("mpirun", "sleep 1000 & echo $! > '" + (folder_ / "worker").string() + ".part'; mv '" +
                     (folder_ / "worker").string() + ".part' '" + (folder_ / "worker").string() + "'; wait");
  {
    const std::unique_ptr<Launcher> mpi = make_launcher("mpi", {});
    mpi->start(CellList(folder_), {0, 1}, 1);
    while (!fs::exists(folder_ / "worker")) std::this_thread::yield();
    EXPECT_THAT(mpi->lost({0, 1}), IsEmpty()) << "it runs";
  }
  const pid_t worker = std::stoi(text_of(folder_ / "worker"));
  const auto state = [&] { return text_of("/proc/" + std::to_string(worker) + "/status"); };
  while (!state().empty() && state().find("State:\tZ") == std::string::npos) std::this_thread::yield();
}

TEST_F(Launchers, AListIsReadAsItWasWrittenAndBeginsAnew) {
  const CellList list(folder_ / "res" / "launch");
  list.write({{.index = 3, .arguments = {"run", "a b.toml", "x=\"1\""}}, {.index = 0, .arguments = {}}});
  const std::vector<ListedCell> cells = list.read();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].index, 3U);
  EXPECT_THAT(cells[0].arguments, ElementsAre("run", "a b.toml", "x=\"1\""));
  EXPECT_EQ(cells[1].index, 0U);
  EXPECT_THAT(cells[1].arguments, IsEmpty());
  EXPECT_TRUE(list.claim(3));
  EXPECT_FALSE(list.claim(3)) << "another worker has it";
  EXPECT_TRUE(list.claim(0));
  EXPECT_FALSE(list.end_of(3).has_value());
  list.write_end(3, {.ending = {.exit_code = 4, .signal = 0}, .host = "north"});
  list.write_end(0, {.ending = {.exit_code = 1, .signal = 9}, .host = ""});
  EXPECT_EQ(list.end_of(3)->ending.exit_code, 4);
  EXPECT_EQ(list.end_of(3)->ending.signal, 0);
  EXPECT_EQ(list.end_of(3)->host, "north");
  EXPECT_EQ(list.end_of(0)->ending.signal, 9);
  EXPECT_FALSE(list.is_stopped());
  list.stop();
  EXPECT_TRUE(list.is_stopped());
  list.write({});
  EXPECT_FALSE(list.is_stopped());
  EXPECT_FALSE(list.end_of(3).has_value());
  EXPECT_TRUE(list.claim(3)) << "nothing is left of the list before";
}

TEST_F(Launchers, AListThatIsNoneOrInNoFolderIsNamed) {
  EXPECT_THAT(message_of([&] { CellList(folder_).read(); }), HasSubstr("cells.json"));
  std::ofstream(folder_ / "cells.json") << "[{";
  EXPECT_THAT(message_of([&] { CellList(folder_).read(); }),
              HasSubstr("'" + folder_.string() + "/cells.json' is not what a sweep or its worker wrote: "));
  EXPECT_THAT(message_of([&] { CellList(folder_ / "absent").claim(1); }),
              HasSubstr("cannot make '" + folder_.string() + "/absent/claimed-1': No such file"));
  EXPECT_THAT(message_of([&] { CellList(folder_ / "cells.json" / "x").write({}); }), HasSubstr("cannot make '"));
}

/// Loses no cell.
class PatientLauncher final : public Launcher {
 public:
  std::string start(const CellList&, const std::vector<std::size_t>&, unsigned) override { return {}; }
  std::vector<LostCell> lost(const std::vector<std::size_t>&) override { return {}; }
  void stop() override {}
  std::string messages_of(std::size_t) const override { return {}; }
};

TEST_F(Launchers, EachCellThatHasEndedIsToldOnce) {
  const CellList list(folder_ / "launch");
  list.write({});
  for (const std::size_t index : {0, 1, 2})
    list.write_end(index, {.ending = {.exit_code = static_cast<int>(index)}, .host = "here"});
  PatientLauncher launcher;
  std::vector<std::string> told;
  follow_cells(list, launcher, {2, 0}, [&](const FollowedCell& cell) {
    told.push_back(std::to_string(cell.index) + ": " + std::to_string(cell.end.ending.exit_code) + cell.end.host +
                   cell.lost);
  });
  EXPECT_THAT(told, ElementsAre("2: 2here", "0: 0here")) << "cell 1 was not asked for";
}

TEST_F(Launchers, ACommandSaysWhatItWroteAndHowItEnded) {
  CommandResult result = output_of({"sh", "-c", "echo out; echo error >&2; exit 7"});
  EXPECT_EQ(result.output, "out\nerror\n");
  EXPECT_EQ(result.ending.exit_code, 7);
  EXPECT_FALSE(result.is_good());
  result = output_of({"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"});
  EXPECT_EQ(result.output.size(), 100000U);
  EXPECT_TRUE(result.is_good());
  result = output_of({"sh", "-c", "kill -15 $$"});
  EXPECT_FALSE(result.is_good());
  EXPECT_EQ(result.ending.signal_text(), "signal 15 (SIGTERM)");
  EXPECT_EQ(result.ending.exit_code, 1);
  EXPECT_EQ(Ending{}.signal_text(), "");
  EXPECT_EQ(message_of([] { output_of({"no-such-program-anywhere"}); }),
            "no-such-program-anywhere: there is no such program in PATH");
  EXPECT_THAT(words_of("  --mem=4G   -p  gpu\n"), ElementsAre("--mem=4G", "-p", "gpu"));
  EXPECT_THAT(words_of(" "), IsEmpty());
}

TEST_F(Launchers, AProgramGetsTheseVariablesInPlaceOfOursAndNoInput) {
  ::setenv("TENON_TEST_A", "ours", 1);
  ::setenv("TENON_TEST_AB", "kept", 1);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = spawn({"/bin/sh", "-c", "echo $TENON_TEST_A $TENON_TEST_AB; cat; echo lost >&2"},
                            {.output = ends[1], .error = {}, .variables = {"TENON_TEST_A=given"}});
  ::close(ends[1]);
  std::string said(64, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], said.data(), said.size()), 0)));
  ::close(ends[0]);
  EXPECT_EQ(said, "given kept\n");
  EXPECT_EQ(::getpgid(child), ::getpgrp()) << "of our group";
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(ending_of(status).exit_code, 0);
  EXPECT_THAT(message_of([] { spawn({"sh"}, {}); }), HasSubstr("cannot start sh: No such file"))
      << "PATH was not to be searched";
  ::unsetenv("TENON_TEST_A");
  ::unsetenv("TENON_TEST_AB");
}

}  // namespace
}  // namespace tenon::cli
