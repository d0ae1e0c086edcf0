// `tenon run` under a launcher that speaks torchrun's variables, on emulated GPUs: each rank takes its own.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

class NcclRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_, "train", 24, 24);
    write_pictures(folder_, "t10k", 8, 8);
    const std::string data = "[data]\npath = \"data\"\n[model]\nhidden = 16\n";
    const std::string train = "[train]\nbatch_size = 8\ntest_batch_size = 8\nthreads = 1\nmax_steps = 3\n";
    folder_.write("exp.toml", "[plugins]\nsearch = [\"" TENON_EMULATED_CUDA_FOLDER "\"]\n[device]\nname = \"cuda\"\n" +
                                  data + train + "[distributed]\nname = \"nccl\"\n[distributed.nccl]\ntimeout = 60\n");
  }
  nlohmann::json run(const std::string& launch, const std::string& words, const std::string& out) const {
    tenon(launch, "run exp.toml " + words + " --out " + out);
    return parse_json(read_bytes(folder_.path() / out / "result.json"));
  }
  std::string tenon(const std::string& launch, const std::string& words) const {
    const std::string line = "cd '" + folder_.path().string() +
                             "' && TENON_CUDA_LIBRARIES=" TENON_EMULATED_CUDA_LIBRARIES " timeout 120 " + launch +
                             " " TENON_PROGRAM " " + words + " >said 2>&1 </dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0) << read_bytes(folder_.path() / "said");
    return read_bytes(folder_.path() / "said");
  }
  Folder folder_;
};

std::vector<double> losses_of(const nlohmann::json& result) {
  return result.at("result").at("losses").get<std::vector<double>>();
}

TEST_F(NcclRuns, TwoRanksOnTwoDevicesHaveTheLossesOfOneWhateverIsDivided) {
  const auto alone = losses_of(run("env", "'distributed.name=\"\"'", "one"));
  ASSERT_EQ(alone.size(), 3U);
  for (const std::string shard : {"none", "optimizer", "gradients", "parameters"}) {
    const auto result = run("bash " TENON_NCCL_LAUNCH " 2", "'distributed.shard=\"" + shard + "\"'", shard);
    const auto losses = losses_of(result);
    ASSERT_EQ(losses.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(losses[i], alone[i], 1e-5 * std::abs(alone[i])) << shard;
    EXPECT_EQ(result["ranks"]["count"], 2);
  }
}

TEST_F(NcclRuns, AFinishedRunThatIsResumedIsShownAndAllRanksEndWell) {
  run("bash " TENON_NCCL_LAUNCH " 2", "", "two");
  EXPECT_THAT(tenon("bash " TENON_NCCL_LAUNCH " 2", "run --resume two"),
              testing::HasSubstr("this run is finished; nothing was run"));
}

/// Rank 1 has a variable of the environment more.
class NcclRanksThatDiffer : public NcclRuns {
 protected:
  std::string said_with(const std::string& variable, int code) const {
    const std::string one = "if [ $RANK = 1 ]; then export " + variable + "; fi; exec \"$@\"";
    const std::string line = "cd '" + folder_.path().string() +
                             "' && TENON_CUDA_LIBRARIES=" TENON_EMULATED_CUDA_LIBRARIES
                             " timeout 120 bash " TENON_NCCL_LAUNCH " 2 bash -c '" +
                             one + "' one " TENON_PROGRAM " run exp.toml --out two >said 2>&1 </dev/null";
    const int status = std::system(line.c_str());
    std::string said = read_bytes(folder_.path() / "said");
    EXPECT_EQ(WEXITSTATUS(status), code) << said;
    EXPECT_EQ(said.find("tenon: "), said.rfind("tenon: ")) << said;
    return said;
  }
};

TEST_F(NcclRanksThatDiffer, SettingsAreComparedWhereTheyMeet) {
  EXPECT_THAT(said_with("TENON_TRAIN__LR=0.5", 2),
              testing::HasSubstr("train.lr is not the same on all ranks: rank 0: 0.001; rank 1: 0.5"));
}

TEST_F(NcclRanksThatDiffer, WhatIsWrongWithOneIsSaidByRankZeroWhichWaitsForIt) {
  EXPECT_THAT(said_with("TENON_TRAIN__LR=fast", 2), testing::HasSubstr("rank 1 of 2: "));
}

}  // namespace
}  // namespace tenon::test
