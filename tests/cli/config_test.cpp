// `tenon config`, and what every mistake in a file looks like from outside: message, place, exit code.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ConfigVerb : public Program {
 protected:
  Said check(const std::string& text, std::vector<std::string> more = {}) {
    folder_.write("exp.toml", text);
    more.insert(more.begin(), {"config", "check", "exp.toml"});
    return tenon(more);
  }
};

TEST_F(ConfigVerb, CheckSaysThatAFileIsFine) {
  const Said said = check(experiment("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\"]\n"));
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("exp.toml: valid"), HasSubstr("a sweep of 2 cells over allocator.name")));
}

TEST_F(ConfigVerb, CheckAndShowHaveAFormatForPrograms) {
  EXPECT_EQ(check(experiment()).code, 0);
  const nlohmann::json fine = parse_json(tenon({"config", "check", "exp.toml", "--format", "json"}).out);
  EXPECT_EQ(fine.at("rows").at(0).at("allocator"), "caching");
  EXPECT_EQ(fine.at("rows").at(0).at("sweep_cells"), 0);
  const nlohmann::json shown = parse_json(tenon({"config", "show", "exp.toml", "--format", "json"}).out);
  const auto& rows = shown.at("rows");
  EXPECT_TRUE(std::ranges::any_of(
      rows, [](const nlohmann::json& row) { return row.at("key") == "train.batch_size" && row.at("value") == "16"; }));
}

TEST_F(ConfigVerb, MistakesHaveAPlaceAHintAndCodeTwo) {
  struct Mistake {
    std::string text, place, hint;
  };
  for (const Mistake& mistake :
       {Mistake{"[train]\nbatchsize = 3\n", "exp.toml:2:1: ", "did you mean 'batch_size'?"},
        Mistake{"[train]\nepochs = \"two\"\n", "exp.toml:2:10: ", "expects a"},
        Mistake{"[train]\nbatch_size = 0\n", "exp.toml:2:14: ", "too small"},
        Mistake{"[allocator]\nname = \"cachng\"\n", "exp.toml:2:8: ", "did you mean \"caching\"?"},
        Mistake{"[allocator.limit]\nbytes = \"12 parsecs\"\n", "exp.toml:2:9: ", "12 parsecs"},
        Mistake{"[modle]\n", "exp.toml:1:2: ", "did you mean [model]?"},
        Mistake{"[train]\nepochs = \n", "exp.toml:2:", "not TOML"}}) {
    const Said said = check(mistake.text);
    SCOPED_TRACE(mistake.text);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.error, AllOf(StartsWith("tenon: " + mistake.place), HasSubstr(mistake.hint)));
    EXPECT_EQ(tenon({"run", "exp.toml", "--dry-run"}).code, 2) << "a run says the same";
  }
}

TEST_F(ConfigVerb, AMissingFileIsAUsageError) {
  const Said said = tenon({"config", "check", "gone.toml"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("gone.toml"), HasSubstr("No such file")));
}

TEST_F(ConfigVerb, ShowPrintsTomlThatChecks) {
  const Said said = tenon({"config", "show", "exp.toml", "train.lr=0.25"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("lr = 0.25"));
  folder_.write("again.toml", said.out);
  EXPECT_EQ(tenon({"config", "show", "again.toml"}).out, said.out);
}

TEST_F(ConfigVerb, ExplainSaysWhichPlaceWon) {
  const Said said =
      tenon({"config", "explain", "exp.toml", "train.epochs", "train.epochs=9"}, {{"TENON_TRAIN__EPOCHS", "5"}});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("command line train.epochs=9"),
                              HasSubstr("5 (environment TENON_TRAIN__EPOCHS)"), HasSubstr("2 (exp.toml:6:10)")));
  EXPECT_EQ(tenon({"config", "explain", "exp.toml", "train.epoch"}).code, 2);
}

TEST_F(ConfigVerb, ExplainNamesTheWordsThatAChoiceTakes) {
  const Said said = tenon({"config", "explain", "exp.toml", "model.name", "--format", "csv"});
  EXPECT_THAT(said.out, HasSubstr("the model: mlp, lenet, resnet8"));
}

TEST_F(ConfigVerb, ASettingThatTheModelDoesNotReadIsRemarkedOn) {
  const Said said = tenon({"config", "check", "exp.toml", "model.name=lenet", "model.hidden=12"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("model.hidden changes nothing: lenet reads dropout, image_size"));
  EXPECT_THAT(tenon({"config", "check", "exp.toml", "model.hidden=12"}).error, Not(HasSubstr("changes nothing")));
  folder_.write("again.toml", tenon({"config", "show", "exp.toml", "model.name=lenet", "model.hidden=256"}).out);
  EXPECT_THAT(tenon({"config", "check", "again.toml"}).error, Not(HasSubstr("changes nothing"))) << "all are stated";
  const std::string models = "sweep.\"model.name\"=[\"mlp\", \"lenet\"]";
  EXPECT_THAT(tenon({"config", "check", "exp.toml", models, "model.hidden=12"}).error,
              Not(HasSubstr("changes nothing")));
  EXPECT_THAT(tenon({"config", "check", "exp.toml", models, "model.tied=false"}).error,
              HasSubstr("model.tied changes nothing: none of lenet, mlp reads it"));
}

TEST_F(ConfigVerb, ABadOverrideOrVariableIsNamed) {
  EXPECT_THAT(tenon({"run", "exp.toml", "train.epochs"}).error, HasSubstr("expected KEY=VALUE"));
  const Said word = tenon({"run", "exp.toml", "train.epochs=lots"});
  EXPECT_EQ(word.code, 2);
  EXPECT_THAT(word.error, HasSubstr("command line train.epochs=lots"));
  const Said variable = tenon({"run", "exp.toml"}, {{"TENON_TRAIN__EPOCH", "1"}});
  EXPECT_EQ(variable.code, 2);
  EXPECT_THAT(variable.error, AllOf(HasSubstr("environment TENON_TRAIN__EPOCH"), HasSubstr("did you mean 'epochs'?")));
}

}  // namespace
}  // namespace tenon::test
