// Which rank a process is: what torchrun, Open MPI and Slurm say in their variables.
#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Variables = std::map<std::string, std::string, std::less<>>;

RankEnvironment ranks_of(const Variables& variables) {
  return rank_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RankEnvironment, WhereTorchrunsStoreListensThePortIsTheNextOne) {
  EXPECT_EQ(ranks_of({{"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}).master_port, 29501);
  EXPECT_EQ(ranks_of({{"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}}).master_port, 29500);
}

TEST(RankEnvironment, ALaunchHasANameThatItsRanksShare) {
  EXPECT_EQ(ranks_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "47"}}).launch,
            ".47");
  EXPECT_EQ(ranks_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}}).launch, ".29500");
  EXPECT_EQ(
      ranks_of({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "8"}, {"SLURM_STEP_ID", "3"}}).launch,
      ".8.3");
  EXPECT_EQ(ranks_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).launch, "");
  EXPECT_EQ(ranks_of({}).launch, "");
}

TEST(RankEnvironment, ACommandIsStartedAgainAsItsLauncherDoesIt) {
  const std::string run = "tenon run --resume res";
  EXPECT_EQ(relaunched(ranks_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), run),
            "mpirun -n 4 tenon run --resume res");
  EXPECT_EQ(relaunched(ranks_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}, {"SLURM_STEP_ID", "0"}}), run),
            "srun -n 3 tenon run --resume res");
  EXPECT_EQ(relaunched(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}}), run),
            "torchrun --no-python --nproc-per-node 4 tenon run --resume res");
  EXPECT_EQ(relaunched(ranks_of({}), run), run);
}

TEST(RankEnvironment, AProcessStartedAloneIsRankZeroOfOne) {
  const RankEnvironment found = ranks_of({});
  EXPECT_EQ(found.rank, 0);
  EXPECT_EQ(found.size, 1);
  EXPECT_EQ(found.launcher, "");
}

TEST(RankEnvironment, TorchrunSaysRankSizeAndMaster) {
  const RankEnvironment found = ranks_of({{"RANK", "5"},
                                          {"WORLD_SIZE", "8"},
                                          {"LOCAL_RANK", "1"},
                                          {"LOCAL_WORLD_SIZE", "4"},
                                          {"MASTER_ADDR", "node0"},
                                          {"MASTER_PORT", "29500"}});
  EXPECT_EQ(found.launcher, "torchrun");
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.size, 8);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_size, 4);
  EXPECT_EQ(found.master_address, "node0");
  EXPECT_EQ(found.master_port, 29500);
}

TEST(RankEnvironment, OpenMpiSaysRankAndSize) {
  const RankEnvironment found = ranks_of({{"OMPI_COMM_WORLD_RANK", "2"},
                                          {"OMPI_COMM_WORLD_SIZE", "4"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  EXPECT_EQ(found.launcher, "Open MPI");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.local_rank, 2);
}

TEST(RankEnvironment, SlurmSaysRankAndSizeInAJobStep) {
  const RankEnvironment found =
      ranks_of({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(found.launcher, "Slurm");
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.local_rank, 1);
}

TEST(RankEnvironment, ABatchScriptOfSlurmIsOneProcess) {
  EXPECT_EQ(ranks_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).size, 1);
}

TEST(RankEnvironment, MpirunInsideASlurmJobDecides) {
  const RankEnvironment found = ranks_of({{"SLURM_PROCID", "0"},
                                          {"SLURM_NTASKS", "1"},
                                          {"SLURM_STEP_ID", "0"},
                                          {"OMPI_COMM_WORLD_RANK", "6"},
                                          {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(found.launcher, "Open MPI");
  EXPECT_EQ(found.rank, 6);
}

TEST(RankEnvironment, AnEmptyVariableIsAsGoodAsNone) {
  EXPECT_EQ(ranks_of({{"RANK", ""}, {"WORLD_SIZE", ""}}).size, 1);
}

TEST(RankEnvironment, OneVariableWithoutTheOtherIsRefused) {
  EXPECT_THAT(
      [] {
        ranks_of({{"RANK", "1"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("RANK is set and WORLD_SIZE is not")));
  EXPECT_THAT(
      [] {
        ranks_of({{"OMPI_COMM_WORLD_SIZE", "4"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not")));
}

TEST(RankEnvironment, ARankBeyondTheSizeIsRefused) {
  EXPECT_THAT(
      [] {
        ranks_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("RANK=4 is none of WORLD_SIZE=4 ranks")));
}

TEST(RankEnvironment, WordsInPlaceOfNumbersAreRefusedByTheVariablesName) {
  EXPECT_THAT(
      [] {
        ranks_of({{"RANK", "first"}, {"WORLD_SIZE", "4"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("RANK is \"first\": it must be a number from 0")));
  EXPECT_THAT([] { ranks_of({{"MASTER_PORT", "-1"}}); }, ThrowsMessage<ConfigError>(HasSubstr("MASTER_PORT")));
}

TEST(RankEnvironment, TheFirstRankIsZero) {
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).rank, 0);
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).size, 2);
}

TEST(RankEnvironment, ANumberWithSomethingBehindItIsNone) {
  EXPECT_THROW(ranks_of({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}), ConfigError);
}

}  // namespace
}  // namespace tenon
