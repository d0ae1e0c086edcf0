// `tenon run` under mpirun: several ranks train one model.
#include "launched.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRanks = "[distributed]\nname = \"mpi\"\n[distributed.mpi]\norder = \"rank\"\ntimeout = 60\n";

class RankRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_, "train", 64, 64);
    write_pictures(folder_, "t10k", 40, 40);
    folder_.write("exp.toml", experiment(kRanks));
  }
  nlohmann::json result(const std::string& out) const {
    return parse_json(read_bytes(folder_.path() / out / "result.json"));
  }
  Launched ranks(int count, const std::string& words) const {
    return mpirun(folder_, "-n " + std::to_string(count) + " $tenon run " + words);
  }
  void alone(const std::string& words) const {
    const std::string line = "cd '" + folder_.path().string() +
                             "' && ASAN_OPTIONS=detect_leaks=0 " TENON_PROGRAM " run " + words + " >said 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << read_bytes(folder_.path() / "said");
  }
  Folder folder_;
};

std::size_t times(const std::string& words, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

std::vector<double> losses_of(const nlohmann::json& result) {
  return result.at("result").at("losses").get<std::vector<double>>();
}

TEST_F(RankRuns, FourRanksHaveTheBitsOfOneProcessWithTheBatchInFourParts) {
  const Launched launched = ranks(4, "exp.toml --out four");
  ASSERT_EQ(launched.code, 0) << launched.text;
  alone("exp.toml train.micro_batches=4 --out one");
  const auto four = result("four"), one = result("one");
  EXPECT_EQ(losses_of(four), losses_of(one));
  EXPECT_EQ(four["result"]["losses_fnv1a64"], one["result"]["losses_fnv1a64"]);
  for (const char* figure : {"test_loss", "test_accuracy"})
    EXPECT_EQ(four["result"]["epochs"][1][figure], one["result"]["epochs"][1][figure]) << figure;
}

TEST_F(RankRuns, FourRanksHaveTheLossesOfTheWholeBatchToRounding) {
  const Launched launched = ranks(4, "exp.toml 'distributed.mpi.order=\"any\"' --out four");
  ASSERT_EQ(launched.code, 0) << launched.text;
  alone("exp.toml --out one");
  const auto four = losses_of(result("four")), one = losses_of(result("one"));
  ASSERT_EQ(four.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(four[i], one[i], 1e-5 * std::abs(one[i])) << i;
}

TEST_F(RankRuns, ThreeRanksShareABatchThatDoesNotDivide) {
  const Launched launched = ranks(3, "exp.toml --out three");
  ASSERT_EQ(launched.code, 0) << launched.text;
  alone("exp.toml train.micro_batches=3 --out one");
  EXPECT_EQ(losses_of(result("three")), losses_of(result("one")));
}

TEST_F(RankRuns, RankZeroAloneSpeaksAndWrites) {
  const Launched launched = ranks(4, "exp.toml --out four");
  ASSERT_EQ(launched.code, 0) << launched.text;
  std::size_t said = 0;
  for (std::size_t at = 0; (at = launched.text.find("results: four", at)) != std::string::npos; ++at) ++said;
  EXPECT_EQ(said, 1U) << launched.text;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "four/report.html"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "tenon-out"));
}

TEST_F(RankRuns, WhatMpirunWritesToAFileHasNoColours) {
  const Launched launched = ranks(2, "exp.toml --out two");
  ASSERT_EQ(launched.code, 0) << launched.text;
  EXPECT_THAT(launched.text, Not(HasSubstr("\x1b")));
}

TEST_F(RankRuns, OnATerminalOfMpirunsThereAreColours) {
  const std::string mpirun = "bash " TENON_SOURCE_DIR "/tests/mpi/mpirun.sh -n 2 " TENON_PROGRAM;
  const std::string line = "cd '" + folder_.path().string() + "' && TERM=xterm script -qec '" + mpirun +
                           " run exp.toml --out two' said >/dev/null 2>&1 </dev/null";
  ASSERT_EQ(std::system(line.c_str()), 0) << read_bytes(folder_.path() / "said");
  EXPECT_THAT(read_bytes(folder_.path() / "said"), HasSubstr("\x1b[1m"));
}

TEST_F(RankRuns, TheResultHasTheMemoryOfEachRankAndNamesTheWorst) {
  const Launched launched = ranks(4, "exp.toml --out four");
  ASSERT_EQ(launched.code, 0) << launched.text;
  const auto of_ranks = result("four").at("ranks");
  EXPECT_EQ(of_ranks["count"], 4);
  ASSERT_EQ(of_ranks["memory"].size(), 4U);
  const std::size_t worst = of_ranks["worst_rank"];
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto& memory = of_ranks["memory"][rank];
    EXPECT_EQ(memory["rank"], rank);
    EXPECT_GT(memory["peak_allocated_bytes"].get<std::int64_t>(), 0);
    EXPECT_LE(memory["peak_reserved_bytes"].get<std::int64_t>(),
              of_ranks["memory"][worst]["peak_reserved_bytes"].get<std::int64_t>());
  }
  EXPECT_THAT(launched.text, HasSubstr("4 ranks: rank " + std::to_string(worst) + " reserved most"));
}

TEST_F(RankRuns, TheCoresOfAMachineAreDividedAmongItsRanks) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "this machine has one core";
  const Launched launched = ranks(2, "exp.toml train.threads=0 --out divided");
  ASSERT_EQ(launched.code, 0) << launched.text;
  EXPECT_THAT(launched.text, testing::ContainsRegex("each rank on this machine has [0-9]+ of its [0-9]+ threads"));
  EXPECT_THAT(ranks(2, "exp.toml train.threads=1 --out one").text, Not(HasSubstr("each rank on this machine")));
}

TEST_F(RankRuns, GradientsThatAddUpAreSentOnce) {
  ASSERT_EQ(ranks(2, "exp.toml --out whole").code, 0);
  ASSERT_EQ(ranks(2, "exp.toml train.micro_batches=4 --out parts").code, 0);
  const auto sent = [&](const char* out) { return result(out)["result"]["figures"]["sent_gradient_bytes"]; };
  EXPECT_GT(sent("whole").get<std::int64_t>(), 0);
  EXPECT_EQ(sent("parts"), sent("whole"));
}

TEST_F(RankRuns, SmallBucketsAndNoOverlapGiveTheSameBits) {
  ASSERT_EQ(ranks(2, "exp.toml --out one").code, 0);
  ASSERT_EQ(ranks(2, "exp.toml 'distributed.bucket_cap=\"1KiB\"' distributed.overlap=false --out many").code, 0);
  EXPECT_EQ(losses_of(result("many")), losses_of(result("one")));
}

TEST_F(RankRuns, ARunGoesOnWithTheSameRanksToTheSameBits) {
  ASSERT_EQ(ranks(4, "exp.toml --out whole").code, 0);
  ASSERT_EQ(ranks(4, "exp.toml train.stop_at=3 train.save=state --out first").code, 0);
  ASSERT_EQ(ranks(4, "exp.toml train.resume=state --out second").code, 0);
  const auto whole = losses_of(result("whole")), second = losses_of(result("second"));
  EXPECT_EQ(std::vector<double>(whole.begin() + 3, whole.end()), second);
}

TEST_F(RankRuns, AFinishedRunThatIsResumedIsShownOnceAndAllRanksEndWell) {
  ASSERT_EQ(ranks(4, "exp.toml --out four").code, 0);
  const std::string before = read_bytes(folder_.path() / "four/result.json");
  const Launched again = ranks(4, "--resume four");
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("this run is finished; nothing was run"));
  EXPECT_EQ(times("tenon: ", again.text), 1U) << again.text;
  EXPECT_EQ(read_bytes(folder_.path() / "four/result.json"), before);
}

TEST_F(RankRuns, ARunGoesOnWithAnotherNumberOfRanks) {
  ASSERT_EQ(ranks(4, "exp.toml --out whole").code, 0);
  ASSERT_EQ(ranks(4, "exp.toml train.stop_at=3 train.save=state --out first").code, 0);
  const auto whole = losses_of(result("whole"));
  for (const int count : {2, 3}) {
    const Launched launched = ranks(count, "exp.toml train.resume=state --out again-" + std::to_string(count));
    ASSERT_EQ(launched.code, 0) << launched.text;
    const auto rest = losses_of(result("again-" + std::to_string(count)));
    ASSERT_EQ(rest.size() + 3, whole.size());
    for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_NEAR(rest[i], whole[i + 3], 1e-5 * whole[i + 3]) << i;
  }
  alone("exp.toml 'distributed.name=\"\"' train.micro_batches=4 train.resume=state --out again-1");
  const auto rest = losses_of(result("again-1"));
  EXPECT_EQ(std::vector<double>(whole.begin() + 3, whole.end()), rest);
}

TEST_F(RankRuns, DividedStatesOfTheOptimizerGiveTheSameBitsWithLessMemory) {
  ASSERT_EQ(ranks(4, "exp.toml --out whole").code, 0);
  const Launched launched = ranks(4, "exp.toml 'distributed.shard=\"optimizer\"' --out divided");
  ASSERT_EQ(launched.code, 0) << launched.text;
  EXPECT_EQ(losses_of(result("divided")), losses_of(result("whole")));
  const auto states = [&](const char* out) {
    std::vector<std::int64_t> bytes;
    const auto json = result(out);
    for (const auto& memory : json["ranks"]["memory"]) bytes.push_back(memory["peak_optimizer_state_bytes"]);
    return bytes;
  };
  const auto whole = states("whole"), divided = states("divided");
  std::int64_t sum = 0;
  for (const std::int64_t bytes : divided) sum += bytes;
  const auto expected = [&](const char* out) {
    return result(out)["result"]["figures"]["expected_optimizer_bytes"].get<std::int64_t>();
  };
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(whole[0]), 0.03 * static_cast<double>(whole[0]));
  EXPECT_NEAR(static_cast<double>(divided[0]), static_cast<double>(expected("divided")), 0.03 * expected("divided"));
  EXPECT_NEAR(static_cast<double>(whole[0]), static_cast<double>(expected("whole")), 0.03 * expected("whole"));
  EXPECT_LT(divided[3], divided[0]);
}

TEST_F(RankRuns, DividedStatesAreSavedWholeAndGoOnWithAnotherNumberOfRanks) {
  const std::string shard = "'distributed.shard=\"optimizer\"' ";
  ASSERT_EQ(ranks(4, "exp.toml --out whole").code, 0);
  const Launched first = ranks(4, "exp.toml " + shard + "train.stop_at=3 train.save=state --out first");
  ASSERT_EQ(first.code, 0) << first.text;
  ASSERT_EQ(ranks(4, "exp.toml " + shard + "train.resume=state --out second").code, 0);
  const auto whole = losses_of(result("whole"));
  const std::vector<double> rest(whole.begin() + 3, whole.end());
  EXPECT_EQ(losses_of(result("second")), rest);
  alone("exp.toml 'distributed.name=\"\"' train.micro_batches=4 train.resume=state --out one");
  EXPECT_EQ(losses_of(result("one")), rest);
  const Launched two = ranks(2, "exp.toml " + shard + "train.resume=state --out two");
  ASSERT_EQ(two.code, 0) << two.text;
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_NEAR(losses_of(result("two"))[i], rest[i], 1e-5 * rest[i]) << i;
}

TEST_F(RankRuns, DividedGradientsAndParametersGiveTheSameBitsWithTheMemoryThatTheorySays) {
  const std::string wide = "exp.toml train.optimizer=adamw model.hidden=256 model.layers=4 train.test_batch_size=8 ";
  ASSERT_EQ(ranks(4, wide + "--out whole").code, 0);
  for (const std::string shard : {"gradients", "parameters"}) {
    const Launched launched = ranks(4, wide + "'distributed.shard=\"" + shard + "\"' --out " + shard);
    ASSERT_EQ(launched.code, 0) << launched.text;
    EXPECT_EQ(losses_of(result(shard)), losses_of(result("whole"))) << shard;
    for (const char* figure : {"test_loss", "test_accuracy"})
      EXPECT_EQ(result(shard)["result"]["epochs"][1][figure], result("whole")["result"]["epochs"][1][figure]) << figure;
    const auto json = result(shard);
    const auto figures = json["result"]["figures"];
    const auto expect_near = [&](const char* measured, const char* expected) {
      const double bytes = figures[expected];
      for (const auto& memory : json["ranks"]["memory"])
        EXPECT_NEAR(memory[measured].get<double>(), bytes, 0.03 * bytes) << shard << " " << measured;
    };
    expect_near("peak_parameter_bytes", "expected_parameter_bytes");
    expect_near("peak_gradient_bytes", "expected_divided_gradient_bytes");
    expect_near("peak_optimizer_state_bytes", "expected_optimizer_bytes");
  }
}

TEST_F(RankRuns, DividedParametersWithMicroBatchesClippingAndMixedPrecisionHaveTheLossesOfWholeOnes) {
  for (const std::string more : {"train.micro_batches=2", "train.clip_grad_norm=0.05", "train.zero_grad=zero",
                                 "'train.precision=\"bfloat16-mixed\"'", "train.checkpoint=true"}) {
    ASSERT_EQ(ranks(2, "exp.toml " + more + " --out whole").code, 0) << more;
    const auto whole = losses_of(result("whole"));
    for (const std::string shard : {"gradients", "parameters"}) {
      const Launched launched = ranks(2, "exp.toml " + more + " 'distributed.shard=\"" + shard + "\"' --out divided");
      ASSERT_EQ(launched.code, 0) << launched.text;
      const auto divided = losses_of(result("divided"));
      ASSERT_EQ(divided.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_NEAR(divided[i], whole[i], 1e-5 * std::abs(whole[i])) << more << " " << shard << " step " << i;
    }
  }
}

TEST_F(RankRuns, RanksThatHaveAPartOfTheGradientsLeaveAStepOutTogether) {
  // The first factors of the loss are too large for gradients in float16.
  const std::string half = "exp.toml 'train.precision=\"float16-mixed\"' train.clip_grad_norm=1.0 ";
  ASSERT_EQ(ranks(2, half + "--out whole").code, 0);
  const auto scale = [&](const std::string& out) { return result(out)["result"]["figures"]["loss_scale"]; };
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    const Launched launched = ranks(2, half + "'distributed.shard=\"" + shard + "\"' --out " + shard);
    ASSERT_EQ(launched.code, 0) << launched.text;
    const auto whole = losses_of(result("whole")), divided = losses_of(result(shard));
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(divided[i], whole[i], 1e-4 * whole[i]) << shard << i;
    EXPECT_EQ(scale(shard), scale("whole")) << shard;
  }
}

TEST_F(RankRuns, DividedParametersAreSavedWholeAndGoOnWithAnotherNumberOfRanks) {
  ASSERT_EQ(ranks(4, "exp.toml train.optimizer=adamw --out whole").code, 0);
  const auto whole = losses_of(result("whole"));
  const std::vector<double> rest(whole.begin() + 3, whole.end());
  for (const std::string divided : {"gradients", "parameters"}) {
    const std::string shard = "'distributed.shard=\"" + divided + "\"' train.optimizer=adamw ";
    const Launched first = ranks(4, "exp.toml " + shard + "train.stop_at=3 train.save=state --out first");
    ASSERT_EQ(first.code, 0) << first.text;
    ASSERT_EQ(ranks(4, "exp.toml " + shard + "train.resume=state --out second").code, 0);
    EXPECT_EQ(losses_of(result("second")), rest) << divided;
    alone("exp.toml 'distributed.name=\"\"' train.optimizer=adamw train.micro_batches=4 train.resume=state --out one");
    EXPECT_EQ(losses_of(result("one")), rest) << divided;
    const Launched two = ranks(2, "exp.toml " + shard + "train.resume=state --out two");
    ASSERT_EQ(two.code, 0) << two.text;
    for (std::size_t i = 0; i < rest.size(); ++i)
      EXPECT_NEAR(losses_of(result("two"))[i], rest[i], 1e-5 * rest[i]) << divided << " " << i;
  }
}

TEST_F(RankRuns, WhatDividedParametersDoNotGoWithIsRefusedWithTheReason) {
  const auto refused = [&](const std::string& words, const char* why) {
    const Launched launched = ranks(2, "exp.toml 'distributed.shard=\"parameters\"' " + words);
    EXPECT_EQ(launched.code, 2) << launched.text;
    EXPECT_THAT(launched.text, HasSubstr(why));
  };
  refused("'train.precision=\"bfloat16\"' train.master_weights=true", "each rank has masters of all parameters");
  refused("train.optimizer=adamw 'train.optimizer_states=\"8bit\"'",
          "train.optimizer_states keeps 256 values together");
  refused("'train.quantize=\"dynamic\"'", "train.quantize makes integers of a whole model");
}

TEST_F(RankRuns, AStepThatDoesNotUseEveryParameterIsAnErrorThatSaysWhatToSet) {
  const std::string experts =
      "exp.toml 'model.name=\"moe\"' 'data.name=\"text\"' data.path=text.txt model.experts=16 "
      "model.experts_per_token=1 model.context=4 model.hidden=16 train.batch_size=2 "
      "train.max_steps=2 ";
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abcdefgh"[i * 7 % 8];
  folder_.write("text.txt", text);
  const Launched refused = ranks(2, experts + "--out refused");
  EXPECT_EQ(refused.code, 1) << refused.text;
  EXPECT_THAT(refused.text, AllOf(HasSubstr("got no gradient (block0.experts.expert"),
                                  HasSubstr("set find_unused_parameters"), Not(HasSubstr("rank 1 of 2: rank 1"))));
  const Launched found = ranks(2, experts + "distributed.find_unused_parameters=true --out found");
  ASSERT_EQ(found.code, 0) << found.text;
  EXPECT_EQ(losses_of(result("found")).size(), 2U);
  for (const std::string shard : {"gradients", "parameters"}) {
    const Launched divided = ranks(
        2, experts + "distributed.find_unused_parameters=true 'distributed.shard=\"" + shard + "\"' --out divided");
    ASSERT_EQ(divided.code, 0) << divided.text;
    EXPECT_EQ(losses_of(result("divided")), losses_of(result("found"))) << shard;
  }
}

TEST_F(RankRuns, BatchNormAndDropoutTrain) {
  const Launched dropout = ranks(2, "exp.toml model.dropout=0.5 --out dropout");
  ASSERT_EQ(dropout.code, 0) << dropout.text;
  EXPECT_EQ(result("dropout")["result"]["steps"], 8);
  const Launched norm = ranks(2, "exp.toml 'model.name=\"resnet18\"' train.max_steps=2 --out norm");
  ASSERT_EQ(norm.code, 0) << norm.text;
  EXPECT_EQ(result("norm")["result"]["steps"], 2);
}

TEST_F(RankRuns, WithoutMpirunItIsOneRank) {
  alone("exp.toml --out one-rank");
  alone("exp.toml 'distributed.name=\"\"' --out one");
  EXPECT_EQ(losses_of(result("one-rank")), losses_of(result("one")));
  EXPECT_FALSE(result("one-rank").contains("ranks"));
}

TEST_F(RankRuns, SeveralProcessesOfAnExperimentForOneAreRefused) {
  const Launched launched = ranks(2, "exp.toml 'distributed.name=\"\"'");
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(launched.text, HasSubstr("Open MPI started 2 processes, and the experiment is that of one: set "
                                       "distributed.name"));
}

TEST_F(RankRuns, WhatIsWrongBeforeTheRanksHaveMetIsSaidOnce) {
  for (const std::string words : {"run exp.toml 'distributed.name=\"mpx\"'", "run exp.toml 'distributed.name=\"\"'",
                                  "run exp.toml model.hiden=4", "run --resume nowhere", "run exp.toml --otu x"}) {
    const Launched launched = mpirun(folder_, "-n 3 $tenon " + words);
    EXPECT_EQ(launched.code, 2) << launched.text;
    EXPECT_EQ(times("tenon: ", launched.text), 1U) << launched.text;
  }
}

TEST_F(RankRuns, WhatIsWrongOnOneRankAloneIsSaidWithItsNumber) {
  const Launched launched = mpirun(folder_, "-n 1 $tenon run exp.toml : -n 1 $tenon run exp.toml model.hiden=4");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text, HasSubstr("tenon: rank 1 of 2: "));
}

TEST_F(RankRuns, ASweepIsNotShared) {
  const Launched launched = ranks(2, "exp.toml --sweep train.lr=0.1,0.2");
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(launched.text, HasSubstr("several processes cannot share a sweep"));
}

TEST_F(RankRuns, WhatRanksCannotShareIsRefusedByItsSetting) {
  const Launched parts = ranks(4, "exp.toml train.micro_batches=8 --out parts");
  EXPECT_EQ(parts.code, 2);
  EXPECT_THAT(parts.text, HasSubstr("train.micro_batches: 8 parts on each of 4 ranks, of a batch of 16"));
  const Launched update = ranks(2, "exp.toml train.optimizer_in_backward=true --out update");
  EXPECT_EQ(update.code, 2);
  EXPECT_THAT(update.text, HasSubstr("train.optimizer_in_backward: ranks sum their gradients before the update"));
}

TEST_F(RankRuns, ADryRunIsSaidOnce) {
  const Launched launched = ranks(2, "exp.toml --dry-run");
  EXPECT_EQ(launched.code, 0);
  const std::size_t first = launched.text.find("[distributed]");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(launched.text.find("[distributed]", first + 1), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
