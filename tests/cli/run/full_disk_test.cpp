// Runs and sweeps on a disk that is full: a small tmpfs, in a namespace of this test's own.
#include "cli/interrupted.h"

#include <sys/mount.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

namespace tenon::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr char kInside[] = "TENON_TEST_MOUNTS";
constexpr std::size_t kDiskBytes = 8 << 20;

/// A test that mounts: it runs itself again in a namespace where it may, and skips where there is no such thing.
class FullDisk : public InterruptedProgram {
 protected:
  void TearDown() override {
    if (is_mounted_) ::umount(at("disk").c_str());
    Program::TearDown();
  }

  /// Whether the body of the test is for this process; otherwise another one has run it, or it is skipped.
  bool may_mount() {
    if (std::getenv(kInside) != nullptr) return true;
    for (const std::string space : {"unshare -rm", "unshare -m"}) {
      const std::string place = folder_.path().string();
      const std::string probe = space + " mount -t tmpfs none '" + place + "' > '" + at("why").string() + "' 2>&1";
      if (std::system(probe.c_str()) != 0) continue;
      const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
      const std::string again = space + " env " + kInside + "=1 '" + fs::read_symlink("/proc/self/exe").string() +
                                "' --gtest_filter=" + info->test_suite_name() + "." + info->name() + " > '" +
                                at("inside").string() + "' 2>&1";
      EXPECT_EQ(std::system(again.c_str()), 0) << read_bytes(at("inside"));
      return false;
    }
    skip_reason_ = "a file system cannot be mounted here: " + read_bytes(at("why"));
    return false;
  }

  /// An empty disk with room for that many bytes.
  void mount_with_room(std::size_t room) {
    if (is_mounted_) {
      ASSERT_EQ(::umount(at("disk").c_str()), 0) << std::strerror(errno);
    }
    fs::create_directories(at("disk"));
    const std::string options = "size=" + std::to_string(kDiskBytes);
    ASSERT_EQ(::mount("none", at("disk").c_str(), "tmpfs", 0, options.c_str()), 0) << std::strerror(errno);
    is_mounted_ = true;
    std::ofstream(at("disk/filler")) << std::string(kDiskBytes - room, 'x');
  }
  void make_space() const { fs::remove(at("disk/filler")); }
  std::size_t some_room(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random_); }

  bool is_mounted_ = false;
  std::string skip_reason_;
};

TEST_F(FullDisk, CostsARunFilesAndNoFiguresAndItGoesOnOnceThereIsSpace) {
  if (!may_mount()) {
    if (!skip_reason_.empty()) GTEST_SKIP() << skip_reason_;
    return;
  }
  const std::vector<std::string> begin = {"run", "run.toml", "--record", "trace", "--out"};
  std::vector<std::string> whole = begin;
  whole.emplace_back("whole");
  ASSERT_EQ(tenon(whole).code, 0);
  std::vector<std::string> there = begin;
  there.emplace_back("disk/out");
  for (int moment = 0; moment < moments(); ++moment) {
    const std::size_t room = some_room(1'200'000);
    const std::string where = std::to_string(room) + " bytes of room";
    mount_with_room(room);
    const Said said = tenon(there);
    expect_nothing_corrupt(at("disk"), where);
    if (fs::exists(at("disk/out"))) expect_no_partials(at("disk/out"), where);
    EXPECT_THAT(said.code, AnyOf(0, 1, 2)) << where << said.error;
    if (said.code != 0) {
      EXPECT_THAT(said.error, HasSubstr("No space left on device")) << where;
    }
    if (said.error.find("epoch 1/") != std::string::npos) {
      EXPECT_THAT(said.out, HasSubstr("peak reserved")) << where << said.error;
    }
    make_space();
    const std::vector<std::string> printed = printed_command(said);
    if (said.code != 0) {
      const Said next = tenon(printed.empty() ? there : printed);
      EXPECT_EQ(next.code, 0) << where << said.error << next.error;
    }
    expect_same_result("whole", "disk/out", where);
    expect_no_partials(at("disk/out"), where);
  }
}

TEST_F(FullDisk, CostsTensorBoardsEventsAndNoFigures) {
  if (!may_mount()) {
    if (!skip_reason_.empty()) GTEST_SKIP() << skip_reason_;
    return;
  }
  int cut_short = 0;
  for (std::size_t room = 16 << 10; room <= 64 << 10; room += 8 << 10) {
    mount_with_room(room);
    const Said said = tenon({"run", "run.toml", "--record", "tensorboard", "--out", "disk/out"});
    if (said.error.find("epoch 1/") == std::string::npos) continue;
    EXPECT_THAT(said.out, HasSubstr("peak reserved")) << room << said.error;
    cut_short += said.code;
  }
  EXPECT_GT(cut_short, 0) << "every room was large enough";
}

TEST_F(FullDisk, NamesEveryRecordingThatIsMissingAndHowItIsMade) {
  if (!may_mount()) {
    if (!skip_reason_.empty()) GTEST_SKIP() << skip_reason_;
    return;
  }
  int commands = 0;
  for (std::size_t room = 40 << 10; room <= 160 << 10; room += 24 << 10) {
    mount_with_room(room);
    const Said said = tenon({"run", "run.toml", "train.epochs=2", "--record", "all", "--out", "disk/out"});
    if (said.error.find("epoch 1/") == std::string::npos) continue;
    EXPECT_THAT(said.error, testing::Not(testing::ContainsRegex("\n  tenon [^\n]*;"))) << "a line to be copied";
    make_space();
    for (const char* name : {"memory.tenon", "memory.trace.gz", "memory.pickle", "memory.chrome.json", "memory.folded",
                             "report.html", "result.json"}) {
      if (!fs::exists(at("disk/out") / name)) {
        EXPECT_THAT(said.error, HasSubstr(name)) << room;
      }
      const std::string command = std::string("tenon trace convert disk/out/memory.tenon disk/out/") + name;
      if (said.error.find("\n  " + command) == std::string::npos) continue;
      ++commands;
      EXPECT_EQ(tenon({"trace", "convert", "disk/out/memory.tenon", std::string("disk/out/") + name}).code, 0) << name;
    }
  }
  EXPECT_GT(commands, 0) << "no room was right";
}

TEST_F(FullDisk, LeavesNoFolderOfARunThatCouldNotBegin) {
  if (!may_mount()) {
    if (!skip_reason_.empty()) GTEST_SKIP() << skip_reason_;
    return;
  }
  int refused = 0;
  for (std::size_t room = 0; room <= 24 << 10; room += 4 << 10) {
    mount_with_room(room);
    const Said said = tenon({"run", "run.toml", "--record", "trace", "--out", "disk/some/out"});
    if (fs::exists(at("disk/some/out/run.json"))) continue;
    ++refused;
    EXPECT_EQ(said.code, 1) << room << said.error;
    EXPECT_FALSE(fs::exists(at("disk/some"))) << room << said.error;
  }
  EXPECT_GT(refused, 1);
}

TEST_F(FullDisk, KeepsTheFinishedCellsOfASweep) {
  if (!may_mount()) {
    if (!skip_reason_.empty()) GTEST_SKIP() << skip_reason_;
    return;
  }
  ASSERT_EQ(tenon({"run", "sweep.toml", "--out", "whole"}).code, 0);
  const auto whole = json_of(at("whole/result.json"));
  for (int moment = 0; moment < moments(2); ++moment) {
    const std::size_t room = some_room(2'400'000);
    const std::string where = std::to_string(room) + " bytes of room";
    mount_with_room(room);
    const std::vector<std::string> begin = {"run",      "sweep.toml", "--out",
                                            "disk/out", "-j",         moment % 2 == 0 ? "1" : "2"};
    const Said said = tenon(begin);
    expect_nothing_corrupt(at("disk"), where);
    if (fs::exists(at("disk/out"))) expect_no_partials(at("disk/out"), where);
    std::map<std::string, nlohmann::json> finished;
    std::error_code none;
    for (const auto& cell : fs::directory_iterator(at("disk/out/cells"), none)) {
      const auto result = json_of(cell.path() / "result.json");
      if (result.is_object() && result["status"] == "done") finished[cell.path()] = result["result"];
    }
    if (said.error.find("epoch 60/60") != std::string::npos) {
      EXPECT_THAT(said.out + said.error, HasSubstr("peak reserved")) << where;
    }
    make_space();
    const std::vector<std::string> printed = printed_command(said);
    if (said.code != 0) {
      EXPECT_THAT(said.error, HasSubstr("No space left on device")) << where;
      const Said next = tenon(printed.empty() ? begin : printed);
      EXPECT_EQ(next.code, 0) << where << said.error << next.error;
    }
    for (const auto& [cell, result] : finished)
      EXPECT_EQ(json_of(fs::path(cell) / "result.json")["result"], result) << where << ": a finished cell is kept";
    expect_same_rows(whole, "disk/out", where);
    expect_no_partials(at("disk/out"), where);
  }
}

}  // namespace
}  // namespace tenon::test
