// Ranks that are stopped in a test, that have stages of a pipeline each, and what is expected of the memory of one.
#include "train/ranks/rank_fixture.h"

namespace tenon::test {
namespace {

class RankRules : public RankExperiment {};

// Rank 1 is asked after each of three steps, and then before a batch of the test.
TEST_F(RankRules, OneThatIsStoppedInATestEndsAllAndTheyGoOnWithTheTest) {
  const auto stopped = [this](const Words& words, const std::string& file) {
    for (const nlohmann::json& rank : ranks(2, "mlp", words, [&](int rank, Words&) {
           state.file = file;
           if (rank == 1) sink.stops = [asked = 0]() mutable { return ++asked >= 4; };
         })) {
      ASSERT_FALSE(rank.contains("error")) << rank;
      EXPECT_EQ(rank["interrupted"], true);
      EXPECT_EQ(rank["steps"], 3);
      EXPECT_FALSE(rank.contains("test_loss")) << "a part of a test is no test";
    }
  };
  stopped({"data.test_limit=40", "distributed.shard=\"parameters\""}, "");
  const std::string file = folder / "state";
  stopped({"data.test_limit=40"}, file);
  const nlohmann::json whole = ranks(2, "mlp", {"data.test_limit=40"})[0];
  ASSERT_TRUE(whole.contains("test_loss")) << whole;
  for (const nlohmann::json& rank : ranks(2, "mlp", {"data.test_limit=40"}, [&](int, Words&) {
         state.file = file;
         state.go_on = true;
       })) {
    ASSERT_FALSE(rank.contains("error")) << rank;
    EXPECT_EQ(rank["interrupted"], false);
    for (const char* figure : {"losses", "steps", "test_loss", "test_accuracy"})
      EXPECT_EQ(rank[figure], whole[figure]) << figure;
  }
}

// Thirteen examples are six and seven on the ranks, and three or four in their micro-batches.
TEST_F(RankRules, WithStagesEachTheyHaveTheLossesOfOneProcess) {
  const nlohmann::json one = alone("mlp", {"train.batch_size=13"});
  for (const nlohmann::json& rank :
       ranks(2, "mlp",
             {"train.batch_size=13", "train.micro_batches=2", "device.simulated.count=2",
              R"(device.names=["simulated:0", "simulated:1"])", "train.parallel=\"pipeline\""})) {
    ASSERT_FALSE(rank.contains("error")) << rank;
    ASSERT_EQ(rank["losses"].size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(rank["losses"][i].get<double>(), one["losses"][i].get<double>(), 2e-5) << "step " << i + 1;
    EXPECT_NEAR(rank["test_loss"].get<double>(), one["test_loss"].get<double>(), 2e-5);
    EXPECT_EQ(rank["figures"]["data_ranks"], 2);
  }
}

// Of thirteen examples the rank with more has seven.
TEST_F(RankRules, TheExpectedMemoryIsOfTheLargestShareWithACopyOfAllGradientsInBuckets) {
  const nlohmann::json seven = alone("gpt", {"train.batch_size=7"})["figures"];
  for (const nlohmann::json& rank : ranks(2, "gpt", {"train.batch_size=13"})) {
    ASSERT_FALSE(rank.contains("error")) << rank;
    const nlohmann::json& figures = rank["figures"];
    for (const char* same : {"expected_activation_bytes", "expected_gradient_bytes", "expected_optimizer_bytes"})
      EXPECT_EQ(figures[same], seven[same]) << same;
    EXPECT_EQ(figures["expected_total_bytes"].get<double>(),
              seven["expected_total_bytes"].get<double>() + 4 * rank["parameters"].get<double>());
  }
}

}  // namespace
}  // namespace tenon::test
