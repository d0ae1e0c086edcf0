// Ranks that train one model: they learn what one process learns, agree before they begin, end together, and say what
// each of them had.
#include "train/ranks/rank_fixture.h"

#include <tenon/tensor/generator.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

std::string shard_setting(const std::string& shard) { return "distributed.shard=\"" + shard + "\""; }

class RanksTogether : public RankExperiment {};

class DividedRuns : public RankExperiment, public ::testing::WithParamInterface<std::tuple<int, std::string>> {};

TEST_P(DividedRuns, HaveTheBitsOfOneProcessWithTheBatchInAsManyParts) {
  const auto& [size, shard] = GetParam();
  for (const std::string batch : {"train.batch_size=12", "train.batch_size=13"}) {
    const nlohmann::json one = alone("mlp", {batch, fmt::format("train.micro_batches={}", size)});
    for (const nlohmann::json& rank : ranks(size, "mlp", {batch, shard_setting(shard)})) {
      ASSERT_FALSE(rank.contains("error")) << rank;
      EXPECT_EQ(rank["losses"], one["losses"]) << batch;
      for (const char* figure : {"parameters", "steps", "test_loss", "test_accuracy"})
        EXPECT_EQ(rank[figure], one[figure]) << figure << ", " << batch;
      EXPECT_EQ(rank["figures"]["ranks"], size);
      EXPECT_EQ(rank["figures"]["data_ranks"], size);
    }
    for (const char* figure : {"ranks", "data_ranks", "sent_gradient_bytes"})
      EXPECT_FALSE(one["figures"].contains(figure)) << figure << " of one process";
  }
}

// What a rank remembers is its part alone, of what learns, and theory says how much that is.
TEST_P(DividedRuns, RememberWhatLearnsOnceBetweenThem) {
  const auto& [size, shard] = GetParam();
  for (const std::string lora : {"train.lora_rank=0", "train.lora_rank=2"}) {
    const nlohmann::json one = alone("gpt", {lora});
    const double all = one["figures"]["expected_optimizer_bytes"];
    EXPECT_EQ(one["own_memory"][3], all) << lora;
    double sum = 0;
    for (const nlohmann::json& rank : ranks(size, "gpt", {lora, shard_setting(shard)})) {
      ASSERT_FALSE(rank.contains("error")) << rank;
      const double own = rank["figures"]["expected_optimizer_bytes"];
      EXPECT_EQ(rank["own_memory"][3], own) << lora;
      sum += own;
    }
    EXPECT_EQ(sum, shard == "none" ? size * all : all) << lora;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DividedRuns,
                         ::testing::Combine(::testing::Values(2, 3),
                                            ::testing::Values("none", "optimizer", "gradients", "parameters")),
                         [](const auto& row) {
                           return std::get<1>(row.param) + std::to_string(std::get<0>(row.param));
                         });

TEST_F(RanksTogether, EachHasTheMemoryOfAll) {
  const auto all = ranks(3, "mlp", {shard_setting("optimizer")});
  for (const nlohmann::json& rank : all) {
    ASSERT_EQ(rank["ranks"].size(), 3U) << rank;
    for (std::size_t other = 0; other < 3; ++other) EXPECT_EQ(rank["ranks"][other], all[other]["own_memory"]);
  }
  EXPECT_NE(all[0]["own_memory"], all[1]["own_memory"]) << "states are divided by whole parameters";
  EXPECT_TRUE(alone("mlp", {})["ranks"].empty());
}

TEST_F(RanksTogether, OneThatIsToStopEndsAllBehindTheSameStepAndTheyGoOnAsRankZeroSays) {
  const nlohmann::json whole = ranks(2, "mlp", {"model.dropout=0.1"})[0];
  const auto stopped = ranks(2, "mlp", {"model.dropout=0.1"}, [&](int rank, Words&) {
    state.file = folder / "state";
    if (rank == 1) sink.stops = [asked = 0]() mutable { return ++asked == 2; };
  });
  for (const nlohmann::json& rank : stopped) {
    EXPECT_EQ(rank["interrupted"], true) << rank;
    EXPECT_EQ(rank["steps"], 2);
  }
  EXPECT_EQ(stopped[0]["kept_step"], 2);
  EXPECT_EQ(stopped[1]["kept_step"], 0) << "rank 0 alone writes";
  for (const nlohmann::json& rank : ranks(2, "mlp", {"model.dropout=0.1"}, [&](int rank, Words&) {
         state.file = folder / "state";
         state.go_on = rank == 0;
       })) {
    EXPECT_EQ(rank["losses"].size(), 3U) << rank;
    EXPECT_EQ(rank["losses"], whole["losses"]) << "a rank goes on with random numbers of its own";
    EXPECT_EQ(rank["interrupted"], false);
  }
}

// The rank with more examples draws more random numbers than rank 0, whose state is the one that is kept.
TEST_F(RanksTogether, OfABatchThatDoesNotDivideGoOnAsIfNobodyHadInterruptedThem) {
  const Words words = {"model.dropout=0.5", "train.batch_size=13"};
  const nlohmann::json whole = ranks(2, "mlp", words)[0];
  for (const nlohmann::json& rank : ranks(2, "mlp", words, [&](int rank, Words&) {
         state.file = folder / "uneven";
         if (rank == 0) sink.stops = [asked = 0]() mutable { return ++asked == 1; };
       }))
    EXPECT_EQ(rank["interrupted"], true) << rank;
  for (const nlohmann::json& rank : ranks(2, "mlp", words, [&](int, Words&) {
         state.file = folder / "uneven";
         state.go_on = true;
       }))
    EXPECT_EQ(rank["losses"], whole["losses"]);
}

/// SplitMix64's next number, as Steele et al. have it.
std::uint64_t split_mix(std::uint64_t state) {
  std::uint64_t z = state + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TEST_F(RanksTogether, EachPartOfTheBatchHasRandomNumbersOfTheSeedAndItsNumber) {
  const auto seed = [] { return default_generator(kCPU).current_seed(); };
  sink.stops = [&] {
    more_ = seed();
    return false;
  };
  alone("gpt", {"train.seed=5"});
  const std::uint64_t first = more_;
  const auto data = ranks(3, "gpt", {"train.seed=5"});
  EXPECT_EQ(data[0]["more"], first) << "that of one process";
  EXPECT_EQ(data[1]["more"], split_mix(first + 1));
  EXPECT_EQ(data[2]["more"], split_mix(first + 2));
  const auto groups = ranks(4, "gpt", {"train.seed=5", "train.tensor_parallel=2"});
  EXPECT_EQ(groups[0]["more"], first);
  EXPECT_EQ(groups[1]["more"], first) << "the same examples";
  EXPECT_EQ(groups[2]["more"], split_mix(first + 1));
  EXPECT_EQ(groups[3]["more"], split_mix(first + 1));
}

TEST_F(RanksTogether, SendGradientsInBucketsOfWhichTheFirstIsSmall) {
  const auto sent = [&](const char* cap) {
    const nlohmann::json rank = ranks(2, "mlp", {"model.hidden=512", "train.max_steps=1", cap})[0];
    std::vector<std::int64_t> bytes;
    for (const nlohmann::json& message : rank["messages"])
      if (message[0] == "all_reduce" && message[1] > 16) bytes.push_back(message[1]);
    EXPECT_EQ(rank["figures"]["sent_gradient_bytes"], std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
    return bytes;
  };
  const std::int64_t head = 4 * (10 * 512 + 10), bias = 4 * 512, second = 4 * 512 * 512, first = 4 * 784 * 512;
  using Bytes = std::vector<std::int64_t>;
  EXPECT_EQ(sent("distributed.bucket_cap=\"3MiB\""), (Bytes{head + bias + second, bias + first})) << "a MiB is full";
  EXPECT_EQ(sent("distributed.bucket_cap=\"1KiB\""), (Bytes{head, bias, second, bias, first}));
  EXPECT_EQ(sent("distributed.bucket_cap=\"512KiB\""), (Bytes{head + bias + second, bias + first}));
}

TEST_F(RanksTogether, SendTheGradientsOfAStepOnce) {
  for (const char* parts : {"train.micro_batches=1", "train.micro_batches=3"}) {
    const nlohmann::json rank = ranks(2, "mlp", {parts})[1];
    EXPECT_EQ(rank["figures"]["sent_gradient_bytes"], 3 * 4 * rank["parameters"].get<std::int64_t>()) << parts;
    for (const char* figure : {"communication_seconds", "communication_waited_seconds", "communication_hidden"})
      EXPECT_TRUE(rank["figures"].contains(figure)) << figure;
  }
}

TEST_F(RanksTogether, ThatSeeOtherDataAreToldWhoSeesWhat) {
  const auto with = [&](int size, int other, const char* setting) {
    return ranks(size, "mlp", {}, [&](int rank, Words& words) {
      if (rank == other) words.emplace_back(setting);
    });
  };
  for (const int other : {0, 1}) {
    const auto all = with(2, other, "data.limit=96");
    for (const nlohmann::json& rank : all) {
      EXPECT_EQ(rank["code"], static_cast<int>(ExitCode::kUsage));
      EXPECT_THAT(rank.value("error", ""),
                  AllOf(HasSubstr("the ranks do not see the same data or saved state: "), HasSubstr("96 examples"),
                        HasSubstr("640 examples"), HasSubstr("24 test examples (checksum "),
                        HasSubstr(": give all of them the same files (data.path, train.resume)")));
    }
    EXPECT_EQ(all[0]["error"], all[1]["error"]) << "rank 0's words";
  }
  EXPECT_THAT(with(3, 2, "data.test_limit=36")[1].value("error", ""),
              AllOf(HasSubstr("36 test examples"), HasSubstr("24 test examples")));
}

TEST_F(RanksTogether, ThatGoOnFromOtherStatesAreToldWhoHasWhat) {
  for (const int steps : {1, 2})
    alone("mlp", {fmt::format("train.stop_at={}", steps),
                  "train.save=\"" + (folder / fmt::format("after{}", steps)).string() + "\""});
  const auto from = [&](int first, int second) {
    return ranks(2, "mlp", {}, [&](int rank, Words& words) {
      words.push_back("train.resume=\"" + (folder / fmt::format("after{}", rank == 0 ? first : second)).string() +
                      "\"");
    });
  };
  EXPECT_THAT(from(1, 2)[0].value("error", ""),
              AllOf(HasSubstr("1 steps done (saved state "), HasSubstr("2 steps done (saved state ")));
  const auto same = from(2, 2);
  EXPECT_EQ(same[0]["losses"].size(), 1U) << same[0];
  EXPECT_EQ(same[0]["losses"], same[1]["losses"]);
}

TEST_F(RanksTogether, WhoseSetUpFailsSayWhatTheFirstOfThemSays) {
  const auto failing = [&](const std::vector<int>& who) {
    return ranks(3, "mlp", {}, [&](int rank, Words& words) {
      if (std::ranges::find(who, rank) != who.end())
        words.push_back(fmt::format("data.path=\"{}\"", (folder / fmt::format("of{}", rank)).string()));
    });
  };
  for (const std::vector<int>& who : {std::vector<int>{0}, {1}, {2}, {1, 2}, {0, 1, 2}}) {
    const auto all = failing(who);
    for (const nlohmann::json& rank : all) {
      EXPECT_THAT(rank.value("error", ""), HasSubstr(fmt::format("of{}", who.front())));
      EXPECT_EQ(rank["error"], all[0]["error"]);
    }
  }
}

TEST_F(RanksTogether, EndWithTheReasonAndTheCodeOfTheOneThatCannotGoOn) {
  const auto with = [&](const std::function<void()>& fails) {
    return ranks(2, "mlp", {}, [&](int rank, Words&) {
      if (rank == 1)
        sink.stops = [fails]() -> bool {
          fails();
          return false;
        };
    });
  };
  const auto expect = [](const std::vector<nlohmann::json>& all, const char* reason, ExitCode code) {
    for (const nlohmann::json& rank : all) {
      EXPECT_EQ(rank["error"], reason) << rank;
      EXPECT_EQ(rank["code"], static_cast<int>(code));
    }
  };
  expect(with([] { throw std::runtime_error("enough"); }), "enough", ExitCode::kFailed);
  expect(with([] { throw ConfigError("wrong"); }), "wrong", ExitCode::kUsage);
  expect(with([] { throw PluginError("missing"); }), "missing", ExitCode::kPlugin);
}

TEST_F(RanksTogether, ABatchHasAnExampleForEachPartOfEachRank) {
  const auto error = [&](const char* batch, const char* parts) {
    return ranks(2, "mlp", {batch, parts})[0].value("error", "accepted");
  };
  EXPECT_THAT(
      error("train.batch_size=1", "train.micro_batches=1"),
      HasSubstr("train.batch_size: 1 is less than an example for each of 2 ranks: raise it, or start fewer ranks"));
  EXPECT_THAT(error("train.batch_size=5", "train.micro_batches=3"),
              HasSubstr("train.micro_batches: 3 parts on each of 2 ranks, of a batch of 5"));
  EXPECT_EQ(error("train.batch_size=2", "train.micro_batches=1"), "accepted");
  EXPECT_EQ(error("train.batch_size=6", "train.micro_batches=3"), "accepted");
}

TEST_F(RanksTogether, OfOneMachineShareItsThreads) {
  const auto all = [&](const char* on_this_machine) {
    return ranks(2, "mlp", {"train.threads=0"}, [&](int rank, Words&) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", "2", 1);
      setenv("LOCAL_RANK", "0", 1);
      setenv("LOCAL_WORLD_SIZE", on_this_machine, 1);
      sink.stops = [&] {
        more_ = device_state(kCPU).driver().threads();
        return false;
      };
    });
  };
  const int threads = all("1")[0]["more"];
  const nlohmann::json shared = all("2")[0];
  EXPECT_EQ(shared["more"], std::max(1, threads / 2));
  const std::string note =
      fmt::format("train.threads=0: each rank on this machine has {} of its {} threads", threads / 2, threads);
  if (threads > 1) {
    EXPECT_THAT(shared["notes"].get<std::vector<std::string>>(), Contains(note));
  }
  EXPECT_EQ(all("1000")[0]["more"], 1) << "each has one";
}

// Batch norm's running means are those of rank 0 before each forward pass.
TEST_F(RanksTogether, TakeTheBuffersOfRankZeroIfTheyAreAskedTo) {
  const auto broadcasts = [&](const char* setting) {
    const nlohmann::json rank = ranks(2, "resnet8", {"train.max_steps=2", "data.test_limit=24", setting})[1];
    EXPECT_FALSE(rank.contains("error")) << rank;
    return std::ranges::count_if(rank["messages"], [](const nlohmann::json& m) { return m[0] == "broadcast"; });
  };
  const std::ptrdiff_t with = broadcasts("distributed.broadcast_buffers=true"),
                       without = broadcasts("distributed.broadcast_buffers=false");
  EXPECT_GE(with - without, 3) << "before each of two steps, and before a test";
}

}  // namespace
}  // namespace tenon::test
