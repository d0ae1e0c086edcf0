// Ranks whose processes are seen: a shell that has a launcher's name starts them.
#include "support/scratch_folder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// What the shell `name` says that runs `script`; $P is the program that says which ranks it sees. `start VARIABLES…`
/// starts another process with these alone, which stays until the end.
std::string said_under(const std::string& name, const std::string& script) {
  const fs::path folder = fs::path(test::scratch_folder()) / "launchers";
  fs::create_directories(folder);
  if (!fs::exists(folder / name)) fs::create_symlink("/bin/sh", folder / name);
  const std::string functions = "P='" TENON_SAYS_RANKS
                                "'; others=; start() { env -i \"$@\" sleep 1000 & others=\"$others $!\"; "
                                "until grep -q sleep /proc/$!/comm; do :; done; }; trap 'test -z \"$others\" || kill "
                                "$others' EXIT; unset PMIX_NAMESPACE; ";
  const std::string file = (folder / (name + ".script")).string();
  {
    std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(file.c_str(), "w"), &std::fclose);
    std::fputs((functions + script + "\n").c_str(), out.get());
  }
  const std::string line = "'" + (folder / name).string() + "' '" + file + "' 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), &::pclose);
  std::string said;
  for (int letter = 0; (letter = std::fgetc(pipe.get())) != EOF;) said += static_cast<char>(letter);
  return said;
}

/// This program as rank 0 of three.
const std::string kOwn = "RANK=0 WORLD_SIZE=3 MASTER_PORT=7$$ \"$P\"";
/// Another process as rank 2 of the same launch.
const std::string kOther = "start RANK=2 WORLD_SIZE=3 MASTER_PORT=7$$; ";

TEST(LaunchedProcesses, AreThoseOfTheLaunchWhateverProgramTheyAre) {
  EXPECT_EQ(said_under("mpirun", kOther + kOwn), "0 2 ");
  EXPECT_EQ(said_under("mpirun", kOwn), "0 ");
  EXPECT_EQ(said_under("mpirun", "start WORLD_SIZE=3 MASTER_PORT=7$$ RANK=1; " + kOther + kOwn), "0 1 2 ");
}

TEST(LaunchedProcesses, AreSeenUnderEveryLauncher) {
  for (const char* name : {"mpiexec", "mpiexec.hydra", "orted", "orterun", "prte", "prterun", "prun", "srun",
                           "slurmstepd", "torchrun", "pt_elastic", "python3.11"})
    EXPECT_EQ(said_under(name, kOther + kOwn), "0 2 ") << name;
}

TEST(LaunchedProcesses, AreNotSeenWhereNoLauncherIs) {
  for (const char* name : {"somebody", "my-mpirun", "mpi"}) EXPECT_EQ(said_under(name, kOther + kOwn), "") << name;
}

TEST(LaunchedProcesses, ALauncherIsSeenBehindWhatARankWasWrappedIn) {
  EXPECT_EQ(said_under("mpirun", kOther + "RANK=0 WORLD_SIZE=3 MASTER_PORT=7$$ sh -c '\"$0\"; true' \"$P\""), "0 2 ");
}

TEST(LaunchedProcesses, OfAnotherLaunchSizeOrKindAreNone) {
  EXPECT_EQ(said_under("mpirun", "start RANK=1 WORLD_SIZE=3 MASTER_PORT=8$$; " + kOther + kOwn), "0 2 ") << "launch";
  EXPECT_EQ(said_under("mpirun", "start RANK=1 WORLD_SIZE=4 MASTER_PORT=7$$; " + kOther + kOwn), "0 2 ") << "size";
  EXPECT_EQ(said_under("mpirun", "start RANK=one WORLD_SIZE=3 MASTER_PORT=7$$; " + kOther + kOwn), "0 2 ") << "kind";
  EXPECT_EQ(said_under("mpirun", "start XRANK=1 WORLD_SIZEX=3 MASTER_PORT=7$$; " + kOther + kOwn), "0 2 ") << "names";
}

TEST(LaunchedProcesses, OfALaunchWithoutANameAreNotSeen) {
  EXPECT_EQ(said_under("mpirun", "start RANK=2 WORLD_SIZE=3; RANK=0 WORLD_SIZE=3 \"$P\""), "");
}

TEST(LaunchedProcesses, AreNotSeenByOneWhoseEnvironmentWasChangedAfterItsStart) {
  EXPECT_EQ(said_under("mpirun", kOther + kOwn + " 1"), "");
  EXPECT_EQ(said_under("mpirun", kOther + kOwn + " 0"), "0 2 ");
}

}  // namespace
}  // namespace tenon
