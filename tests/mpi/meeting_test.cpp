// Ranks of `tenon run` that meet, or do not: with different settings, with an error before it, or not at all.
#include "launched.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MeetingRanks : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_, "train", 64, 64);
    write_pictures(folder_, "t10k", 40, 40);
    folder_.write("exp.toml", experiment("[distributed]\nname = \"mpi\"\n[distributed.mpi]\ntimeout = 60\n"));
  }
  /// Four ranks, of which rank 1 has `words` more.
  Launched with_rank_1(const std::string& words, const std::string& of_all = "") const {
    const std::string run = " $tenon run exp.toml " + of_all + " --out four ";
    return mpirun(folder_, "-n 1" + run + ": -n 1" + run + words + " : -n 2" + run);
  }
  static std::size_t lines_of_tenon(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("tenon: "); at != std::string::npos; at = text.find("tenon: ", at + 1)) ++count;
    return count;
  }
  Folder folder_;
};

TEST_F(MeetingRanks, ASettingThatIsNotTheSameOnAllIsNamedWithTheRanksAndTheirValues) {
  for (const auto& [words, said] :
       {std::pair{"train.lr=0.5", "train.lr is not the same on all ranks: ranks 0, 2, 3: 0.001; rank 1: 0.5: start "},
        {"train.max_steps=1", "train.max_steps is not the same on all ranks: ranks 0, 2, 3: 0; rank 1: 1"},
        {"train.batch_size=7", "train.batch_size is not the same on all ranks: ranks 0, 2, 3: 16; rank 1: 7"},
        {"'train.optimizer=\"sgd\"'", "train.optimizer is not the same on all ranks: ranks 0, 2, 3: \"adamw\"; rank 1"},
        {"distributed.bucket_cap=64", "distributed.bucket_cap is not the same"},
        {"'train.save=\"x\"'", "train.save is not the same on all ranks: ranks 0, 2, 3: \"\"; rank 1: a file"},
        {"'device.name=\"simulated\"'",
         "device is not the same on all ranks: ranks 0, 2, 3: \"cpu\"; rank 1: \"sim"}}) {
    const Launched launched = with_rank_1(words);
    EXPECT_EQ(launched.code, 2) << launched.text;
    EXPECT_THAT(launched.text, HasSubstr(said)) << words;
    EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "four")) << words;
    EXPECT_LT(launched.seconds, kBound);
  }
}

TEST_F(MeetingRanks, AllSettingsThatDifferAreNamed) {
  const Launched launched = with_rank_1("train.lr=0.5 model.hidden=8 train.seed=3");
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(
      launched.text,
      AllOf(HasSubstr("model.hidden is not the same on all ranks: "), HasSubstr("\n  train.lr is not the same"),
            HasSubstr("\n  train.seed is not the same on all ranks: ranks 0, 2, 3: 47; rank 1: 3\nstart every")));
}

TEST_F(MeetingRanks, ADryRunIsOfAllRanksAndComparesTheirSettings) {
  const Launched one = with_rank_1("--dry-run");
  EXPECT_EQ(one.code, 2) << one.text;
  EXPECT_THAT(one.text, HasSubstr("what is asked for is not the same on all ranks: ranks 0, 2, 3: a run; rank 1: "
                                  "--dry-run: start every rank with the same"));
  EXPECT_EQ(lines_of_tenon(one.text), 1U) << one.text;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "four"));
  const Launched other = with_rank_1("model.hidden=8", "--dry-run");
  EXPECT_EQ(other.code, 2) << other.text;
  EXPECT_THAT(other.text, HasSubstr("model.hidden is not the same on all ranks: ranks 0, 2, 3: "));
}

TEST_F(MeetingRanks, AVariableOfTheEnvironmentIsComparedToo) {
  const std::string run = " $tenon run exp.toml --out four";
  const Launched launched = mpirun(folder_, "-n 1" + run + " : -n 1 -x TENON_TRAIN__LR=0.5" + run);
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(launched.text, HasSubstr("train.lr is not the same on all ranks: rank 0: 0.001; rank 1: 0.5"));
}

TEST_F(MeetingRanks, WhatIsOfARanksOwnMachineMayDiffer) {
  std::filesystem::copy(folder_.path() / "data", folder_.path() / "elsewhere");
  const Launched launched = with_rank_1(
      "name=other data.path=elsewhere train.threads=2 report.html=false allocator.name=direct "
      "distributed.mpi.timeout=50");
  EXPECT_EQ(launched.code, 0) << launched.text;
}

TEST_F(MeetingRanks, DataOfAnotherSizeIsNamed) {
  std::filesystem::copy(folder_.path() / "data", folder_.path() / "elsewhere");
  write_pictures(folder_, "train", 48, 48);
  const Launched launched = with_rank_1("data.path=elsewhere");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text,
              testing::ContainsRegex("the ranks do not see the same data or saved state: ranks 0, 2, 3: 48 examples "
                                     "\\(checksum ........\\), 40 test examples \\(checksum ........\\); rank 1: 64 "
                                     "examples \\(checksum "));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
}

TEST_F(MeetingRanks, OtherDataOfTheSameSizeAreNamed) {
  std::filesystem::copy(folder_.path() / "data", folder_.path() / "elsewhere");
  {
    std::fstream labels(folder_.path() / "elsewhere" / "t10k-labels-idx1-ubyte",
                        std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(labels.seekp(-1, std::ios::end).put('\0')) << "the last of 40 is a 9";
  }
  const Launched launched = with_rank_1("data.path=elsewhere");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text, testing::ContainsRegex("the ranks do not see the same data or saved state: ranks 0, 2, 3: "
                                                    "64 examples .*; rank 1: 64 examples .*data.path, train.resume"));
}

TEST_F(MeetingRanks, AnotherStateAfterAsManyStepsIsNamed) {
  const std::string run = " $tenon run exp.toml distributed.name= train.stop_at=2 --out before ";
  for (const std::string words : {"'train.save=\"a.safetensors\"'", "'train.save=\"b.safetensors\"' train.lr=0.5"}) {
    const Launched saved = mpirun(folder_, "-n 1" + run + words);
    ASSERT_EQ(saved.code, 0) << saved.text;
  }
  const Launched launched = with_rank_1("'train.resume=\"b.safetensors\"'", "'train.resume=\"a.safetensors\"'");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text,
              testing::ContainsRegex("ranks 0, 2, 3: .*, 2 steps done \\(saved state [0-9a-f]*\\); rank 1: .*, 2 steps "
                                     "done \\(saved state "));
  const Launched same = with_rank_1("", "'train.resume=\"a.safetensors\"'");
  EXPECT_EQ(same.code, 0) << same.text;
}

TEST_F(MeetingRanks, WhatTheCommunicatorItselfComparesIsSaidOnceToo) {
  const Launched launched = with_rank_1("'distributed.mpi.order=\"rank\"'");
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(launched.text, HasSubstr("the communicator mpi is not the same on all ranks: ranks 0, 2, 3: order=any, "
                                       "check=true; rank 1: order=rank, check=true"));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
}

TEST_F(MeetingRanks, WhatIsWrongWithOneIsSaidAtOnceHoweverLittlePatienceTheOthersHave) {
  const Launched launched = with_rank_1("model.hiden=4", "distributed.mpi.timeout=5");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text, AllOf(HasSubstr("tenon: rank 1 of 4: "), HasSubstr("hiden")));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
  EXPECT_THAT(launched.text, Not(HasSubstr("not every rank")));
}

TEST_F(MeetingRanks, AVariableOfAnotherLauncherIsNamedAndNoLineOfTheFile) {
  const Launched launched = mpirun(folder_, "-x RANK=0 -n 2 $tenon run exp.toml --out two");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text, AllOf(HasSubstr("tenon: the environment variable RANK is set and WORLD_SIZE is not"),
                                   Not(HasSubstr("exp.toml:"))));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
}

TEST_F(MeetingRanks, WhoDoesNotComeIsNamed) {
  const std::string run = " $tenon run exp.toml distributed.mpi.timeout=1 --out four";
  const Launched launched = mpirun(folder_, "-n 2" + run + " : -n 1 sleep 100 : -n 1" + run);
  EXPECT_EQ(launched.code, 1) << launched.text;
  // Who gives up first tells rank 0.
  EXPECT_THAT(launched.text, testing::ContainsRegex("tenon: rank [013] of 4: not every rank has begun MPI within 1.0 s "
                                                    "\\(timeout\\): rank 2 has not come to it: it hangs before it, or "
                                                    "was not started"));
  EXPECT_EQ(lines_of_tenon(launched.text), 1U) << launched.text;
  EXPECT_LT(launched.seconds, kBound);
  const Launched first = mpirun(folder_, "-n 1 sleep 100 : -n 3" + run);
  EXPECT_EQ(first.code, 1) << first.text;
  EXPECT_THAT(first.text, HasSubstr(" rank 0 has not come to it: it hangs before it, or was not started"));
  EXPECT_EQ(lines_of_tenon(first.text), 1U) << first.text;
}

TEST_F(MeetingRanks, OneThatEndsBeforeItIsNamedAtOnceWhicheverItIs) {
  const std::string run = " $tenon run exp.toml --out four";
  const Launched second = mpirun(folder_, "-n 2" + run + " : -n 1 true : -n 1" + run);
  EXPECT_EQ(second.code, 1) << second.text;
  EXPECT_THAT(second.text, HasSubstr("tenon: rank 2 of 4 has ended before the ranks had met, and has said nothing"));
  EXPECT_EQ(lines_of_tenon(second.text), 1U) << second.text;
  EXPECT_LT(second.seconds, kBound);
  const Launched first = mpirun(folder_, "-n 1 true : -n 3" + run);
  EXPECT_EQ(first.code, 1) << first.text;
  EXPECT_THAT(first.text, HasSubstr("tenon: rank 0 of 4 has ended before the ranks had met"));
  EXPECT_EQ(lines_of_tenon(first.text), 1U) << first.text;
  EXPECT_LT(first.seconds, kBound);
}

TEST_F(MeetingRanks, OneWithoutAddressSpaceForMpiIsNamedAtOnceWithTheReason) {
  const std::string run = "$tenon run exp.toml --out four";
  // MPI goes on without the memory that ranks share, and would wait for ever.
  const Launched small =
      mpirun(folder_, "-n 2 " + run + " : -n 1 bash -c \"ulimit -v 400000; exec " + run + "\" : -n 1 " + run);
  EXPECT_EQ(small.code, 1) << small.text;
  EXPECT_THAT(small.text,
              testing::ContainsRegex("tenon: rank 2 of 4: MPI has left this process less than 16 MiB of the "
                                     "address space that it may have, 390 MiB .ulimit -v."));
  EXPECT_EQ(lines_of_tenon(small.text), 1U) << small.text;
  EXPECT_LT(small.seconds, kBound);
}

}  // namespace
}  // namespace tenon::test
