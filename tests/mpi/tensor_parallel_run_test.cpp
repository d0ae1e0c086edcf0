// `train.tensor_parallel` under mpirun: ranks that divide the layers of each block learn what one process learns, and
// each needs what theory says of its part.
#include "launched.h"
#include "support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::HasSubstr;

class DividedLayers : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string stem : {"train", "t10k"}) write_pictures(folder_, stem, 64, 64);
    folder_.write("text.txt", drawn_text());
    folder_.write(
        "exp.toml",
        "[device]\nname = \"cpu\"\n[model]\nname = \"gpt\"\nhidden = 64\nlayers = 3\nheads = 4\ncontext = 32\n"
        "[data]\nname = \"text\"\npath = \"text.txt\"\ntest_limit = 8\n"
        "[train]\nbatch_size = 8\ntest_batch_size = 2\nmax_steps = 6\nlr = 0.01\nthreads = 1\n"
        "[report]\nhtml = false\n");
  }
  nlohmann::json result(const std::string& out) const {
    return parse_json(read_bytes(folder_.path() / out / "result.json"));
  }
  Launched divided(int ranks, const std::string& words) const {
    const std::string count = std::to_string(ranks);
    return mpirun(folder_, "-n " + count + " $tenon run exp.toml 'distributed.name=\"mpi\"' train.tensor_parallel=" +
                               count + " " + words);
  }
  void alone(const std::string& words) const {
    const std::string line = "cd '" + folder_.path().string() +
                             "' && ASAN_OPTIONS=detect_leaks=0 " TENON_PROGRAM " run exp.toml " + words + " >said 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << read_bytes(folder_.path() / "said");
  }
  /// Losses and tests of so many ranks, and of one process; `name` is of folders.
  void have_the_losses_of_one(int ranks, const std::string& name, const std::string& words, double tolerance = 2e-4) {
    const std::string out = name + std::to_string(ranks);
    const Launched launched = divided(ranks, words + " --out " + out);
    ASSERT_EQ(launched.code, 0) << launched.text;
    if (!std::filesystem::exists(folder_.path() / (name + "1"))) alone(words + " --out " + name + "1");
    const auto one = result(name + "1")["result"], many = result(out)["result"];
    const std::vector<double> expected = one["losses"], losses = many["losses"];
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], tolerance * expected[i]) << out << ", step " << i + 1;
    EXPECT_NEAR(many["epochs"][0]["test_loss"].get<double>(), one["epochs"][0]["test_loss"].get<double>(),
                tolerance * expected.front());
    EXPECT_EQ(many["parameters"], one["parameters"]) << "of the whole model";
  }
  static double figure(const nlohmann::json& result, const char* name) { return result["result"]["figures"][name]; }
  Folder folder_;
};

TEST_F(DividedLayers, HaveTheLossesOfOneProcess) {
  have_the_losses_of_one(2, "gpt", "");
  have_the_losses_of_one(4, "gpt", "");
  have_the_losses_of_one(2, "llama", "'model.name=\"llama\"' model.kv_heads=2");
  have_the_losses_of_one(4, "heads", "'model.name=\"llama\"' model.tied=false");
  have_the_losses_of_one(2, "vit",
                         "'model.name=\"vit\"' 'data.name=\"fashion-mnist\"' 'data.path=\"data\"' model.patch=7 "
                         "train.max_steps=3");
}

TEST_F(DividedLayers, StandBesideDataRanksAndStagesOfAPipeline) {
  const std::string stages =
      "device.simulated.count=2 'device.names=[\"simulated:0\", \"simulated:1\"]' 'train.parallel=\"pipeline\"' "
      "train.micro_batches=2";
  const auto has_the_losses_of_one = [&](int ranks, const std::string& out, const std::string& words) {
    const Launched launched = mpirun(folder_, "-n " + std::to_string(ranks) +
                                                  " $tenon run exp.toml 'distributed.name=\"mpi\"' "
                                                  "'distributed.mpi.order=\"rank\"' model.layers=4 " +
                                                  words + " --out " + out);
    ASSERT_EQ(launched.code, 0) << launched.text;
    const std::vector<double> expected = result("one")["result"]["losses"], losses = result(out)["result"]["losses"];
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 2e-4 * expected[i]) << out << ", step " << i + 1;
    EXPECT_NEAR(result(out)["result"]["epochs"][0]["test_loss"].get<double>(),
                result("one")["result"]["epochs"][0]["test_loss"].get<double>(), 5e-4);
    EXPECT_EQ(result(out)["memory_estimate"]["error"]["peak_requested"].get<double>(), 0) << out;
    EXPECT_EQ(result(out)["ranks"]["count"], ranks);
  };
  alone("model.layers=4 --out one");
  has_the_losses_of_one(4, "groups", "train.tensor_parallel=2");
  has_the_losses_of_one(4, "kept", "train.tensor_parallel=2 train.save_every=2");
  has_the_losses_of_one(4, "clipped", "train.tensor_parallel=2 train.clip_grad_norm=100");
  has_the_losses_of_one(2, "stages", stages);
  has_the_losses_of_one(4, "all", "train.tensor_parallel=2 " + stages);
}

TEST_F(DividedLayers, OfDataRanksGoOnAloneFromAWholeState) {
  const std::string common = "train.clip_grad_norm=0.5 'train.schedule=\"cosine\"' ";
  const Launched first =
      mpirun(folder_, "-n 4 $tenon run exp.toml 'distributed.name=\"mpi\"' train.tensor_parallel=2 " + common +
                          "train.stop_at=3 train.save=state.safetensors --out first");
  ASSERT_EQ(first.code, 0) << first.text;
  alone(common + "train.resume=state.safetensors --out second");
  alone(common + "--out whole");
  const std::vector<double> expected = result("whole")["result"]["losses"],
                            later = result("second")["result"]["losses"];
  ASSERT_EQ(later.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(later[i], expected[3 + i], 2e-4 * expected[3 + i]);
}

TEST_F(DividedLayers, RefuseRanksThatAreNoMultiple) {
  const Launched launched =
      mpirun(folder_, "-n 3 $tenon run exp.toml 'distributed.name=\"mpi\"' train.tensor_parallel=2 --out refused");
  EXPECT_EQ(launched.code, 2) << launched.text;
  EXPECT_THAT(launched.text, HasSubstr("groups of 2 ranks divide the layers, and there are 3 ranks"));
  EXPECT_EQ(launched.text.find("tenon: "), launched.text.rfind("tenon: ")) << "once: " << launched.text;
}

TEST_F(DividedLayers, TakeTheTechniquesOfTraining) {
  have_the_losses_of_one(2, "clip", "train.clip_grad_norm=0.05 'model.activation=\"relu\"'");
  have_the_losses_of_one(2, "again", "train.checkpoint=true train.micro_batches=2");
  have_the_losses_of_one(2, "some", "train.checkpoint=true train.checkpoint_blocks=2");
  have_the_losses_of_one(2, "mixed", "'train.precision=\"bfloat16-mixed\"'", 2e-2);
  have_the_losses_of_one(2, "half", "'train.precision=\"float16-mixed\"' train.clip_grad_norm=0.5", 2e-2);
  EXPECT_EQ(figure(result("half2"), "loss_scale"), figure(result("half1"), "loss_scale")) << "steps left out";
  const Launched dropout = divided(2, "model.dropout=0.1 --out dropout");
  EXPECT_EQ(dropout.code, 0) << dropout.text;
}

TEST_F(DividedLayers, NeedWhatTheoryExpectsOfEachRank) {
  for (const int ranks : {2, 4}) {
    for (const char* words : {"", "'model.activation=\"relu\"'", "train.checkpoint=true", "train.micro_batches=2"}) {
      const std::string out = "theory" + std::to_string(ranks);
      const Launched launched = divided(ranks, std::string(words) + " --out " + out);
      ASSERT_EQ(launched.code, 0) << launched.text;
      const auto json = result(out);
      const auto near = [&](double measured, const char* name) {
        EXPECT_NEAR(measured / figure(json, name), 1, 0.03) << name << ", " << ranks << " ranks " << words;
      };
      const auto& purposes = json["memory"]["peak_requested_bytes_by_purpose"];
      near(purposes["activation"], "expected_activation_bytes");
      near(purposes["gradient"], "expected_gradient_bytes");
      for (const auto& memory : json["ranks"]["memory"]) {
        near(memory["peak_requested_bytes"], "expected_total_bytes");
        near(memory["peak_optimizer_state_bytes"], "expected_optimizer_bytes");
      }
      std::filesystem::remove_all(folder_.path() / out);
    }
  }
}

TEST_F(DividedLayers, SendTwoSumsForEachBlockForwardAndBack) {
  ASSERT_EQ(divided(2, "train.max_steps=1 train.test_batch_size=8 --out sent").code, 0);
  const double stream = 8 * 32 * 64 * 4;  // batch, context, hidden, float32
  EXPECT_NEAR(figure(result("sent"), "tensor_parallel_sent_bytes"), 3 * (4 + 2) * stream, 100)
      << "a step, and a test without backward";
}

TEST_F(DividedLayers, AreSavedWholeAndGoOnWithAnyNumberOfRanks) {
  for (const std::string model :
       {"", "'model.name=\"llama\"'", "'train.precision=\"bfloat16\"' train.master_weights=true"}) {
    const auto losses = [&](const std::string& out) {
      const std::vector<double> all = result(out)["result"]["losses"];
      std::filesystem::remove_all(folder_.path() / out);
      return all;
    };
    ASSERT_EQ(divided(2, model + " --out whole").code, 0);
    const Launched first = divided(2, model + " train.stop_at=3 train.save=state --out first");
    ASSERT_EQ(first.code, 0) << first.text;
    const std::vector<double> whole = losses("whole"), before = losses("first");
    EXPECT_EQ(before, std::vector<double>(whole.begin(), whole.begin() + 3)) << "to save changes nothing";
    const Launched second = divided(2, model + " train.resume=state --out second");
    ASSERT_EQ(second.code, 0) << second.text;
    EXPECT_EQ(losses("second"), std::vector<double>(whole.begin() + 3, whole.end()));
    const double tolerance = model.find("bfloat16") == std::string::npos ? 2e-4 : 2e-2;
    ASSERT_EQ(divided(4, model + " train.resume=state --out four").code, 0);
    alone(model + " train.resume=state --out one");
    for (const char* out : {"four", "one"}) {
      const std::vector<double> rest = losses(out);
      ASSERT_EQ(rest.size(), 3U);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(rest[i], whole[i + 3], tolerance * whole[i + 3]) << out << i;
    }
  }
}

TEST_F(DividedLayers, ARunWhoseRankIsKilledGoesOnFromTheStateInItsFolder) {
  const std::string words =
      "$tenon run exp.toml 'distributed.name=\"mpi\"' train.tensor_parallel=2 train.epochs=60 train.max_steps=400 "
      "train.save_every=20 ";
  const Launched whole = mpirun(folder_, "-n 2 " + words + "--out whole");
  ASSERT_EQ(whole.code, 0) << whole.text;
  const Launched died = mpirun_with_signal(folder_, "-n 2 " + words + "--out run", "run/state.safetensors", 1, SIGKILL);
  ASSERT_NE(died.code, 0) << died.text;
  const Launched again = mpirun(folder_, "-n 2 $tenon run --resume run");
  ASSERT_EQ(again.code, 0) << again.text;
  EXPECT_EQ(result("run")["result"]["losses"], result("whole")["result"]["losses"]);
}

TEST_F(DividedLayers, SettingsThatMakeNoSenseAreRefused) {
  const auto refused = [this](const std::string& words, const char* why) {
    const Launched launched = mpirun(folder_, "-n 2 $tenon run exp.toml " + words);
    EXPECT_EQ(launched.code, 2) << launched.text;
    EXPECT_THAT(launched.text, HasSubstr(why));
  };
  const std::string mpi = "'distributed.name=\"mpi\"' ";
  refused(mpi + "train.tensor_parallel=4",
          "groups of 4 ranks divide the layers, and there are 2 ranks: start a multiple of 4");
  refused(mpi + "train.tensor_parallel=2 'model.name=\"lstm-lm\"'",
          "the layers of the model 'lstm-lm' are not divided; those of vit, gpt, gpt2, llama are");
  refused(mpi + "train.tensor_parallel=2 'distributed.shard=\"optimizer\"'", "its part of the layers already");
  refused(mpi + "train.tensor_parallel=2 'train.optimizer_states=\"8bit\"'", "blocks of 8 bits are those of whole");
  refused(mpi + "train.tensor_parallel=2 train.lora_rank=2", "would have to be divided with them");
  const Launched heads = divided(2, "model.heads=1");
  EXPECT_NE(heads.code, 0);
  EXPECT_THAT(heads.text, HasSubstr("train.tensor_parallel = 2 does not divide model.heads = 1 evenly"));
  const std::string line =
      "cd '" + folder_.path().string() + "' && " TENON_PROGRAM " run exp.toml train.tensor_parallel=2 >said 2>&1";
  EXPECT_NE(std::system(line.c_str()), 0);
  EXPECT_THAT(read_bytes(folder_.path() / "said"), HasSubstr("set distributed.name, and start tenon under mpirun"));
}

}  // namespace
}  // namespace tenon::test
