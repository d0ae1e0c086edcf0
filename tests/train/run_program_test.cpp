// What `tenon run` says and returns when an experiment cannot run: message, position, exit code.
#include "train/experiment_fixture.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <array>
#include <cstdio>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;
};

class RunProgram : public Experiment {
 protected:
  Outcome tenon_run(const std::string& toml) {
    const std::filesystem::path file = folder / "experiment.toml";
    std::ofstream(file) << toml;
    const std::string command =
        std::string(TENON_PROGRAM) + " run " + file.string() + " --out " + (folder / "out").string() + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> piece;
    while (std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
      outcome.output.append(piece.data(), count);
    const int status = ::pclose(pipe);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  std::string data() const { return "[data]\npath = \"" + folder.string() + "\"\n"; }
};

TEST_F(RunProgram, ABatchSizeOfZeroIsRefusedWithItsPosition) {
  const Outcome outcome = tenon_run("[train]\nbatch_size = 0\n" + data());
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("experiment.toml:2"), HasSubstr("batch_size")));
}

TEST_F(RunProgram, AnUnknownModelIsRefusedAndTheKnownOnesAreNamed) {
  const Outcome outcome = tenon_run("[model]\nname = \"lenett\"\n" + data());
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("experiment.toml:2"), HasSubstr("lenet")));
}

TEST_F(RunProgram, MissingDataFilesAreNamed) {
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  const Outcome outcome = tenon_run(data());
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("t10k-labels-idx1-ubyte"));
}

TEST_F(RunProgram, ATruncatedDataFileIsRefused) {
  std::filesystem::resize_file(folder / "train-images-idx3-ubyte", 1000);
  const Outcome outcome = tenon_run(data());
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("truncated")));
}

TEST_F(RunProgram, OutOfMemoryEndsWithTheReportAndExitCodeFour) {
  const Outcome outcome = tenon_run(
      "[model]\nname = \"lenet\"\n[train]\nbatch_size = 320\n[allocator]\nlayers = [\"limit\"]\n"
      "[allocator.limit]\nbytes = \"12MiB\"\n" +
      data());
  EXPECT_EQ(outcome.exit_code, 4) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("emory"));
}

}  // namespace
}  // namespace tenon::test
