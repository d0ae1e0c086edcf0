// Presets: every published size has the published number of parameters, and nothing else may be said beside one.
#include "train/experiment_fixture.h"

#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/model.h>

#include <gmock/gmock.h>

#include <cmath>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Published {
  std::string model, preset;
  std::int64_t parameters;
};

class Presets : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  /// Parameters of two steps on addresses alone.
  std::int64_t parameters_of(const std::string& model, const std::string& preset, std::vector<std::string> more = {}) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"model.name=\"" + model + "\"",
                         "model.preset=\"" + preset + "\"",
                         "train.batch_size=2",
                         "train.test_batch_size=1",
                         "data.limit=4",
                         "data.test_limit=1"};
    const bool is_text = reads_text(train::task_of(model));
    request.overrides.push_back("data.path=\"" + (is_text ? folder / "text" : folder).string() + "\"");
    if (is_text) request.overrides.insert(request.overrides.end(), {"data.name=\"text\"", "model.context=64"});
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return estimate_memory(Config::load(request).experiment()).parameters;
  }
  std::string mistake(const std::string& model, const std::string& preset, std::vector<std::string> more = {}) {
    try {
      parameters_of(model, preset, std::move(more));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(Presets, HaveTheirPublishedNumbersOfParameters) {
  // Of ddpm the paper says 35.7 and 114 million. Of bert this is with the head for masked symbols and without the
  // pooler, which has as many parameters as the head's matrix: 109,482,240 and 335,141,888 with the pooler alone.
  const std::vector<Published> published = {
      {"gpt2", "small", 124'439'808},
      {"gpt2", "medium", 354'823'168},
      {"gpt2", "large", 774'030'080},
      {"gpt2", "xl", 1'557'611'200},
      {"llama", "1B", 1'235'814'400},
      {"llama", "3B", 3'212'749'824},
      {"llama", "8B", 8'030'261'248},
      {"llama", "70B", 70'553'706'496},
      {"moe", "8x7B", 46'702'792'704},
      {"vit", "B/16", 86'567'656},
      {"vit", "L/16", 304'326'632},
      {"vit", "H/14", 632'045'800},
      {"resnet18", "imagenet", 11'689'512},
      {"resnet50", "imagenet", 25'557'032},
      {"ddpm", "cifar10", 35'746'307},
      {"ddpm", "celebahq256", 113'673'219},
      {"bert", "base", 109'514'298},
      {"bert", "large", 335'174'458},
      {"latent-diffusion", "sd1.5", 859'520'964},
  };
  for (const Published& model : published)
    EXPECT_EQ(parameters_of(model.model, model.preset), model.parameters) << model.model << " " << model.preset;
}

TEST_F(Presets, OfBertAreThoseOfTheEncoderWithItsPoolerInPlaceOfTheHead) {
  for (const auto& [preset, width, with_pooler] :
       {std::tuple{"base", 768, 109'482'240}, std::tuple{"large", 1024, 335'141'888}}) {
    const std::int64_t matrix = width * width + width, head = matrix + 2 * width + 30522, pooler = matrix;
    EXPECT_EQ(parameters_of("bert", preset) - head + pooler, with_pooler);
  }
}

TEST_F(Presets, OfOtherModelsAreRefusedWithTheReason) {
  EXPECT_THAT(mistake("llama", "xl"), HasSubstr("\"xl\" is a size of gpt2; llama has 1B, 3B, 8B, 70B"));
  EXPECT_THAT(mistake("llama", "large"), HasSubstr("is a size of bert and gpt2"));
  EXPECT_THAT(mistake("llama", "9B"), AllOf(HasSubstr("9B"), HasSubstr("8B")));
}

TEST_F(Presets, OverruleTheSettings) {
  EXPECT_EQ(parameters_of("gpt2", "small", {"model.hidden=512"}), 124'439'808);
  EXPECT_THAT(mistake("bert", "base", {"model.context=513"}), HasSubstr("only 512 positions"));
}

TEST_F(Presets, MakeModelsThatTrainInEarnest) {
  const ExperimentResult result = run({"model.name=\"resnet18\"", "model.preset=\"imagenet\"", "train.batch_size=2",
                                       "train.max_steps=2", "train.test_batch_size=2", "data.test_limit=2"});
  ASSERT_EQ(result.losses.size(), 2u);
  EXPECT_TRUE(std::isfinite(result.losses.back()));
}

}  // namespace
}  // namespace tenon::test
