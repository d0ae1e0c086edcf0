// Which rank a process is: what torchrun, Open MPI and Slurm say in their variables.
#include "support/expect_error.h"

#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tenon {
namespace {

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
  test::expect_error<ConfigError>([] { ranks_of({{"RANK", "1"}}); }, "RANK is set and WORLD_SIZE is not");
  test::expect_error<ConfigError>(
      [] {
        ranks_of({{"OMPI_COMM_WORLD_SIZE", "4"}});
      },
      "OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not");
}

TEST(RankEnvironment, ARankBeyondTheSizeIsRefused) {
  test::expect_error<ConfigError>(
      [] {
        ranks_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}});
      },
      "RANK=4 is none of WORLD_SIZE=4 ranks");
}

TEST(RankEnvironment, WordsInPlaceOfNumbersAreRefusedByTheVariablesName) {
  test::expect_error<ConfigError>(
      [] {
        ranks_of({{"RANK", "first"}, {"WORLD_SIZE", "4"}});
      },
      "RANK is \"first\": it must be a number from 0");
  test::expect_error<ConfigError>([] { ranks_of({{"MASTER_PORT", "-1"}}); }, "MASTER_PORT");
}

TEST(RankEnvironment, TheFirstRankIsZero) {
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).rank, 0);
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).size, 2);
}

TEST(RankEnvironment, ANumberWithSomethingBehindItIsNone) {
  EXPECT_THROW(ranks_of({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}), ConfigError);
}

TEST(RankEnvironment, WhatIsNotSaidOfThisMachineIsOneRankOfItsOwn) {
  const RankEnvironment found = ranks_of({{"RANK", "3"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(found.local_rank, 0);
  EXPECT_EQ(found.local_size, 1);
  EXPECT_EQ(found.master_address, "");
  EXPECT_EQ(found.master_port, 0);
  EXPECT_EQ(ranks_of({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}).local_size, 1);
}

TEST(RankEnvironment, TorchrunsVariablesDecideBeforeThoseOfTheLauncherAround) {
  const RankEnvironment found = ranks_of({{"RANK", "1"},
                                          {"WORLD_SIZE", "2"},
                                          {"OMPI_COMM_WORLD_RANK", "6"},
                                          {"OMPI_COMM_WORLD_SIZE", "8"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}});
  EXPECT_EQ(found.launcher, "torchrun");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.size, 2);
  EXPECT_EQ(found.local_size, 1);
}

TEST(RankEnvironment, ALaunchHasBothPartsOfItsName) {
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "id"}, {"MASTER_PORT", "1"}}).launch,
            ".id.1");
  EXPECT_EQ(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "id"}}).launch, ".id");
}

TEST(RankEnvironment, AStoreWithoutAPortHasNone) {
  EXPECT_EQ(ranks_of({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}).master_port, 0);
  EXPECT_EQ(ranks_of({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "1"}}).master_port, 2);
  EXPECT_EQ(ranks_of({{"MASTER_PORT", "1"}}).master_port, 1);
}

TEST(RankEnvironment, EveryNumberIsRefusedByItsName) {
  for (const char* const name : {"MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"})
    for (const char* const word : {"-1", "99999999999", "4.0", " 4", "x"}) {
      Variables variables = {{"RANK", "0"}, {"WORLD_SIZE", "4"}};
      variables[name] = word;
      EXPECT_THAT([&] { ranks_of(variables); },
                  ThrowsMessage<ConfigError>(std::string("the environment variable ") + name + " is \"" + word +
                                             "\": it must be a number from 0"));
    }
}

TEST(RankEnvironment, WhatIsMissingIsNamedWithWhatIsThere) {
  EXPECT_THAT(
      [] {
        ranks_of({{"WORLD_SIZE", "4"}});
      },
      ThrowsMessage<ConfigError>("the environment variable WORLD_SIZE is set and RANK is not: set both, or neither"));
  EXPECT_THAT(
      [] {
        ranks_of({{"SLURM_PROCID", "3"}, {"SLURM_STEP_ID", "0"}});
      },
      ThrowsMessage<ConfigError>(
          "the environment variable SLURM_PROCID is set and SLURM_NTASKS is not: set both, or neither"));
}

TEST(RankEnvironment, TheLastRankIsTheSizeLessOne) {
  EXPECT_EQ(ranks_of({{"RANK", "3"}, {"WORLD_SIZE", "4"}}).rank, 3);
  EXPECT_THAT(
      [] {
        ranks_of({{"RANK", "5"}, {"WORLD_SIZE", "4"}});
      },
      ThrowsMessage<ConfigError>("RANK=5 is none of WORLD_SIZE=4 ranks: they are counted from 0"));
}

TEST(RankEnvironment, ARankOfOneIsStartedAgainWithoutALauncher) {
  EXPECT_EQ(relaunched(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "tenon run"), "tenon run");
  EXPECT_EQ(relaunched(ranks_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "tenon run"),
            "torchrun --no-python --nproc-per-node 1 tenon run");
}

}  // namespace
}  // namespace tenon
