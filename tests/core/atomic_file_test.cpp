// Files that are there as a whole or not at all.
#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

class AtomicFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tenon-atomic-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder); }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
  fs::path folder;
};

TEST_F(AtomicFiles, ReplacesAFileWhenItIsComplete) {
  write_atomically(folder / "file", "old");
  {
    AtomicFile file(folder / "file");
    file.write("new", 3);
    EXPECT_EQ(text_of(folder / "file"), "old");
    file.commit();
  }
  EXPECT_EQ(text_of(folder / "file"), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, ANewFileMayBeReadByThoseWhomTheUmaskAllows) {
  const mode_t before = ::umask(022);
  write_atomically(folder / "file", "new");
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(0644));
}

TEST_F(AtomicFiles, AFileThatIsReplacedKeepsItsPermissions) {
  write_atomically(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms(0604));
  write_atomically(folder / "file", "new");
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(0604));
}

TEST_F(AtomicFiles, AWriteThatTheDeviceHasNoRoomForIsAnError) {
  AtomicFile file("/dev/full");
  EXPECT_THROW(file.write("new", 3), Error);
}

TEST_F(AtomicFiles, LeavesNothingBehindWhenItIsGivenUp) {
  write_atomically(folder / "file", "old");
  {
    AtomicFile file(folder / "file");
    file.write("half", 4);
  }
  EXPECT_EQ(text_of(folder / "file"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, KeepsTheOldFileWhenTheDiskIsFull) {
  write_atomically(folder / "file", "old");
  const pid_t child = ::fork();  // a limit on the size of files stands for the disk
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_atomically(folder / "file", std::string(100'000, 'x'));
    } catch (const Error& error) {
      ::_exit(std::string(error.what()).find("File too large") != std::string::npos ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the error names the reason";
  EXPECT_EQ(text_of(folder / "file"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, AFolderThatIsNotThereIsNamed) {
  try {
    write_atomically(folder / "none" / "file", "text");
    FAIL() << "wrote into nothing";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none/file: No such file"), std::string::npos) << error.what();
  }
}

TEST_F(AtomicFiles, ALinkStaysOneAndAFileKeepsItsMode) {
  write_atomically(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", folder / "link");
  write_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(text_of(folder / "file"), "new");
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AtomicFiles, AChainOfLinksIsFollowedToItsEndAlsoWhereNothingIsThereYet) {
  fs::create_directory(folder / "below");
  fs::create_symlink("below/second", folder / "first");
  fs::create_symlink("third", folder / "below" / "second");
  fs::create_symlink(folder / "file", folder / "below" / "third");
  for (const char* text : {"old", "new"}) {
    write_atomically(folder / "first", text);
    EXPECT_EQ(text_of(folder / "file"), text);
  }
  for (const char* link : {"first", "below/second", "below/third"}) EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
  EXPECT_FALSE(fs::is_symlink(folder / "file"));
}

TEST_F(AtomicFiles, ACircleOfLinksIsReplacedWhereItWasEntered) {
  fs::create_symlink("two", folder / "one");
  fs::create_symlink("one", folder / "two");
  write_atomically(folder / "one", "new");
  EXPECT_EQ(text_of(folder / "one"), "new");
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFiles, WhatIsCommittedIsClosedOnce) {
  int next = -1;
  {
    AtomicFile file(folder / "file");
    file.write("new", 3);
    file.commit();
    next = ::dup(STDERR_FILENO);  // has the number that is free again
  }
  EXPECT_GE(::fcntl(next, F_GETFD), 0) << "another file's";
  ::close(next);
  EXPECT_EQ(text_of(folder / "file"), "new") << "nor is it removed";
}

TEST_F(AtomicFiles, ADeviceIsWrittenDirectlyAndStaysOne) {
  write_atomically("/dev/null", "nothing");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFiles, OneProcessWritesAFileTwiceAtOnceAndBothAreWhole) {
  AtomicFile first(folder / "file");
  AtomicFile second(folder / "file");
  first.write("first", 5);
  second.write("second", 6);
  second.commit();
  EXPECT_EQ(text_of(folder / "file"), "second");
  first.commit();
  EXPECT_EQ(text_of(folder / "file"), "first");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, WhatAZombieLeftIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "of the undead");
    ::kill(::getpid(), SIGKILL);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);  // nobody takes its code
  ASSERT_EQ(files(), 1);
  remove_dead_partials(folder);
  EXPECT_EQ(files(), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(AtomicFiles, OnlyWhatDeadProcessesLeftHalfWrittenIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "of the dead");
    file.write("half", 4);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  AtomicFile ours(folder / "of the living");
  write_atomically(folder / "file.partial-x", "a name of the user's");
  write_atomically(folder / "file.partial-2026-11-22", "and another");
  ASSERT_EQ(files(), 4);
  remove_dead_partials(folder);
  EXPECT_EQ(files(), 3);
  ours.commit();
  EXPECT_TRUE(fs::exists(folder / "of the living"));
  remove_dead_partials(folder / "none");
}

}  // namespace
}  // namespace tenon::test
