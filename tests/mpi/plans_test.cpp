// Estimates of ranks before they are started, against what they then need: plain data parallelism, divided states of
// the optimiser, divided layers.
#include "launched.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PlansOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("text.txt", drawn_text());
    folder_.write(
        "exp.toml",
        "[device]\nname = \"cpu\"\n[distributed]\nname = \"mpi\"\n[model]\nname = \"gpt\"\nhidden = 64\nlayers "
        "= 3\nheads = 4\ncontext = 32\n[data]\nname = \"text\"\npath = \"text.txt\"\ntest_limit = 8\n"
        "[train]\nbatch_size = 8\ntest_batch_size = 2\nmax_steps = 3\nthreads = 1\n"
        "[report]\nhtml = false\n");
  }
  nlohmann::json said(const std::string& words) const {
    const std::string line = "cd '" + folder_.path().string() + "' && " TENON_PROGRAM " run exp.toml " + words +
                             " --dry-run --quiet --format json >said";
    EXPECT_EQ(std::system(line.c_str()), 0) << words;
    return parse_json(read_bytes(folder_.path() / "said"));
  }
  /// What the ranks need, and what rank 0 said of it before and after.
  nlohmann::json result_of(int ranks, const std::string& words) const {
    const Launched launched =
        mpirun(folder_, "-n " + std::to_string(ranks) + " $tenon run exp.toml " + words + " --out run");
    EXPECT_EQ(launched.code, 0) << launched.text;
    auto json = parse_json(read_bytes(folder_.path() / "run/result.json"));
    std::filesystem::remove_all(folder_.path() / "run");
    return json;
  }
  static double ratio(const nlohmann::json& estimated, const nlohmann::json& measured) {
    return estimated.get<double>() / measured.get<double>();
  }
  Folder folder_;
};

TEST_F(PlansOfRanks, AreWithinThreePercentOfWhatEachRankNeeds) {
  const std::string parts = "train.tensor_parallel=";
  for (const auto& [ranks, words] :
       std::vector<std::pair<int, std::string>>{{4, ""},
                                                {3, ""},
                                                {3, "data.test_limit=64 train.test_batch_size=64"},
                                                {4, "'distributed.shard=\"optimizer\"'"},
                                                {3, "'distributed.shard=\"gradients\"'"},
                                                {4, "'distributed.shard=\"parameters\"'"},
                                                {3, "'distributed.shard=\"parameters\"'"},
                                                {3, "'distributed.shard=\"parameters\"' model.hidden=128"},
                                                {2, parts + "2"},
                                                {4, parts + "4"},
                                                {4, parts + "2"},
                                                {2, parts + "2 'model.name=\"llama\"'"},
                                                {4, parts + "4 'model.name=\"llama\"'"}}) {
    const auto rows = said(words + " --ranks " + std::to_string(ranks)).at("rows");
    const auto result = result_of(ranks, words);
    const auto memory = result.at("ranks").at("memory");
    ASSERT_EQ(rows.size(), memory.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["rank"], i);
      EXPECT_NEAR(ratio(rows[i]["estimated_peak_requested_bytes"], memory[i]["peak_requested_bytes"]), 1, 0.03)
          << words << ", rank " << i;
      // Every request comes in the order of the run, whatever the ranks' messages take.
      EXPECT_EQ(rows[i]["estimated_peak_reserved_bytes"], memory[i]["peak_reserved_bytes"]) << words << ", rank " << i;
      EXPECT_NEAR(ratio(rows[i]["optimizer_bytes"], memory[i]["peak_optimizer_state_bytes"]), 1, 0.03)
          << words << ", rank " << i;
      if (words.starts_with(parts)) {
        EXPECT_EQ(rows[i]["parameter_bytes"], memory[i]["peak_parameter_bytes"]) << words << ", rank " << i;
      }
    }
    EXPECT_NEAR(result["memory_estimate"]["error"]["peak_requested"].get<double>(), 0, 0.03) << words;
  }
}

TEST_F(PlansOfRanks, LayoutsOfDataAndTensorRanksAreWithinThreePercentOfTheirRuns) {
  const auto rows = said("--layouts 4").at("rows");
  const auto row_of = [&](int data, int tensor, int zero) {
    for (const auto& row : rows)
      if (row["data"] == data && row["tensor"] == tensor && row["pipeline"] == 1 && row["zero"] == zero) return row;
    ADD_FAILURE() << data << " x " << tensor << ", zero " << zero;
    return nlohmann::json();
  };
  const auto check = [&](const nlohmann::json& row, const std::string& words) {
    std::int64_t worst = 0;
    const auto result = result_of(4, words);
    for (const auto& memory : result["ranks"]["memory"])
      worst = std::max(worst, memory["peak_requested_bytes"].get<std::int64_t>());
    EXPECT_NEAR(ratio(row["estimated_peak_requested_bytes"], worst), 1, 0.03) << words;
  };
  check(row_of(4, 1, 0), "");
  check(row_of(4, 1, 1), "'distributed.shard=\"optimizer\"'");
  check(row_of(4, 1, 2), "'distributed.shard=\"gradients\"'");
  check(row_of(4, 1, 3), "'distributed.shard=\"parameters\"'");
  check(row_of(1, 4, 0), "train.tensor_parallel=4");
  check(row_of(2, 2, 0), "train.tensor_parallel=2");
}

TEST_F(PlansOfRanks, ADryRunUnderMpirunIsOfTheRanksThatWereLaunched) {
  const Launched launched = mpirun(folder_, "-n 3 $tenon run exp.toml --dry-run");
  ASSERT_EQ(launched.code, 0) << launched.text;
  EXPECT_THAT(launched.text, AllOf(HasSubstr("#    2  cpu:0"), HasSubstr("# worst: rank ")));
  EXPECT_EQ(launched.text.find("#    3  cpu:0"), std::string::npos);
}

TEST_F(PlansOfRanks, AKindOfDeviceGivesEachRankOfAMachineItsOwn) {
  const std::string words = "env TENON_LOG=info $tenon run exp.toml device.simulated.count=3 train.max_steps=1 ";
  const Launched each = mpirun(folder_, "-n 4 " + words + "'device.name=\"simulated\"' --out each");
  ASSERT_EQ(each.code, 0) << each.text;
  EXPECT_THAT(each.text,
              AllOf(HasSubstr("opened simulated:0"), HasSubstr("opened simulated:1"), HasSubstr("opened simulated:2")));
  const Launched one = mpirun(folder_, "-n 2 " + words + "'device.name=\"simulated:1\"' --out one");
  ASSERT_EQ(one.code, 0) << one.text;
  EXPECT_EQ(one.text.find("opened simulated:2"), std::string::npos) << "an index is that of every rank";
}

}  // namespace
}  // namespace tenon::test
