// Switches of memory in random combinations: each runs to its end and leaves nothing, or is refused with the reason.
#include "train/experiment_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

struct Switch {
  const char* key;
  std::vector<const char*> values;
};

/// What may stand beside each other in a file, sensible or not.
const std::vector<Switch>& switches() {
  static const std::vector<Switch> all = {
      {"train.precision", {"float32", "bfloat16", "bfloat16-mixed", "float16-mixed"}},
      {"train.master_weights", {"true", "false"}},
      {"train.optimizer", {"sgd", "adamw", "adam"}},
      {"train.optimizer_states", {"full", "8bit"}},
      {"train.optimizer_in_backward", {"true", "false"}},
      {"train.offload", {"none", "activations", "optimizer", "both"}},
      {"train.checkpoint", {"true", "false"}},
      {"train.checkpoint_keep", {"none", "products", "attention"}},
      {"train.chunked_loss", {"0", "4"}},
      {"train.lora_rank", {"0", "4"}},
      {"train.lora_weights", {"float", "int8", "int4"}},
      {"train.micro_batches", {"1", "2", "4"}},
      {"train.inplace_activations", {"true", "false"}},
      {"allocator.name", {"caching", "expandable", "mortise", "direct"}},
  };
  return all;
}

const std::vector<const char*> kModels = {"gpt", "llama", "bert", "moe", "lenet", "vit", "resnet18", "unet"};

std::string setting(const char* key, const std::string& value) {
  const bool is_bare =
      value == "true" || value == "false" || value.find_first_not_of("0123456789") == std::string::npos;
  return is_bare ? fmt::format("{}={}", key, value) : fmt::format("{}=\"{}\"", key, value);
}

/// Each switch is there in fewer than half of them: else nearly all are refused.
Words drawn(std::mt19937& random) {
  Words words;
  for (const Switch& one : switches())
    if (random() % 100 < 40) words.push_back(setting(one.key, one.values[random() % one.values.size()]));
  return words;
}

Words small(const std::string& model) {
  Words words{"device.name=\"simulated:0\"",
              "device.simulated.mode=\"backed\"",
              "train.batch_size=4",
              "train.max_steps=2",
              "data.limit=16",
              "data.test_limit=4",
              "train.test_batch_size=4"};
  if (train::reads_text(train::task_of(model)))
    words.insert(words.end(), {"model.hidden=32", "model.layers=2", "model.heads=2", "model.context=16"});
  return words;
}

int setting_of_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

class Combinations : public Experiment {};

// ./dev test --full draws more of them; TENON_TEST_SEED others.
TEST_F(Combinations, OfSwitchesRunToTheirEndOrAreRefusedWithAReason) {
  const int count = setting_of_environment("TENON_TEST_COMBINATIONS", 40);
  const int seed = setting_of_environment("TENON_TEST_SEED", 17);
  write_letters(folder / "text", 20000);
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  int ran = 0, refused = 0;
  for (int i = 0; i < count; ++i) {
    const std::string model = kModels[random() % kModels.size()];
    const Words words = drawn(random);
    SCOPED_TRACE(fmt::format("seed {}, combination {}: model.name={} {}", seed, i, model, fmt::join(words, " ")));
    live_bytes = 0;
    try {
      const ExperimentResult result = run_model(model, small(model), words);
      ++ran;
      EXPECT_EQ(result.steps, 2);
      // Of 16 bits with few of the exponent the first scales may be too large: then the step is left out.
      EXPECT_TRUE(std::isfinite(result.losses.back())) << result.losses.back();
    } catch (const ConfigError& error) {
      ++refused;
      EXPECT_THAT(error.what(), testing::AnyOf(testing::HasSubstr("train."), testing::HasSubstr("model.")));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    EXPECT_EQ(live_bytes, 0);
  }
  RecordProperty("seed", seed);
  RecordProperty("ran", ran);
  RecordProperty("refused", refused);
  EXPECT_GE(ran, count / 4) << refused << " refused";
  EXPECT_GE(refused, count / 10);
}

}  // namespace
}  // namespace tenon::test
