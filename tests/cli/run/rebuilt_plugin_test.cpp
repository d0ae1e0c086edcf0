// A run or a sweep that is resumed under other files than it began with: plugins that were built again, or Tenon
// itself.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <functional>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RebuiltPlugin : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    build("faulty");
  }
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  nlohmann::json json_of(const std::string& name) const { return parse_json(read_bytes(at(name))); }
  /// my.so becomes that fixture: "mended" is "faulty" without its mistakes.
  void build(const std::string& fixture_name) {
    fs::remove(at("my.so"));
    fs::copy_file(fixture(fixture_name), at("my.so"));
  }
  Said sweep() {
    return tenon({"run", "exp.toml", "allocator.name=[\"my.so:how=forgets\", \"direct\"]", "--sweep", "--out", "res"});
  }
  void change(const std::string& manifest, const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json json = json_of(manifest);
    edit(json);
    folder_.write(manifest, json.dump());
  }
};

TEST_F(RebuiltPlugin, ACellItDisqualifiedRunsAgainAndTheOthersStay) {
  const Said first = sweep();
  ASSERT_EQ(first.code, 1);
  EXPECT_THAT(first.out, HasSubstr("disqualified"));
  EXPECT_THAT(first.error, HasSubstr("once what was wrong is mended, go on with\n  tenon run --resume res"));
  const Said same = tenon({"run", "--resume", "res"});
  EXPECT_EQ(same.code, 1) << "under the same plugin it would be so again";
  EXPECT_THAT(same.error, AllOf(HasSubstr("[1/2] finished before, disqualified: allocator"),
                                HasSubstr("[2/2] finished"), Not(HasSubstr("has changed"))));
  build("mended");
  const Said said = tenon({"run", "--resume", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("my.so has changed since: cell 1 runs again"),
                                HasSubstr("[1/2] allocator.name"), HasSubstr("[2/2] finished before")));
  const auto rows = json_of("res/result.json")["rows"];
  EXPECT_EQ(rows[0]["status"], "done");
  EXPECT_EQ(rows[1]["status"], "done");
  int kept = 0;
  for (const auto& entry : fs::recursive_directory_iterator(at("res/cells"))) {
    if (entry.path().filename() != "previous-1") continue;
    ++kept;
    EXPECT_THAT(read_bytes(entry.path() / "result.json"), HasSubstr("\"disqualified\""));
  }
  EXPECT_EQ(kept, 1);
  EXPECT_THAT(tenon({"run", "--resume", "res"}).error, Not(HasSubstr("has changed")));
}

TEST_F(RebuiltPlugin, AFinishedRunOfItRunsAgainWhenResumed) {
  const std::vector<std::string> run = {"run", "exp.toml", "allocator.name=\"my.so:how=forgets\"", "--out", "one"};
  const Said first = tenon(run);
  ASSERT_EQ(first.code, 1);
  EXPECT_THAT(first.error, HasSubstr("once the plugin is mended, run it again with\n  tenon run --resume one\n"));
  build("mended");
  const Said said = tenon({"run", "--resume", "one"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("my.so has changed since this run began: it runs again from the beginning"),
                                HasSubstr("kept in one/previous-1")));
  EXPECT_EQ(json_of("one/result.json")["status"], "done");
  EXPECT_EQ(json_of("one/previous-1/result.json")["status"], "disqualified");
  EXPECT_THAT(tenon({"run", "--resume", "one"}).error, HasSubstr("nothing was run"));
}

TEST_F(RebuiltPlugin, AnotherBuildOfTenonIsNamedAndKeepsWhatIsFinished) {
  ASSERT_EQ(tenon({"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--out", "res"}).code, 0);
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "one"}).code, 0);
  const auto older = [](nlohmann::json& json) {
    json["tenon"] = {{"version", "0.0.9"}, {"build", "another"}};
    for (auto& plugin : json["plugins"]) plugin["sha256"] = "another";
  };
  for (const char* file : {"res/run.json", "res/cells/001-direct/run.json", "res/cells/002-caching/run.json"})
    change(file, older);
  change("one/run.json", older);
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("Tenon itself was built anew since (0.0.9, now "),
                                HasSubstr("[2/2] finished before"), Not(HasSubstr("has changed"))));
  EXPECT_THAT(tenon({"run", "--resume", "one"}).error,
              AllOf(HasSubstr("nothing was run"), HasSubstr("Tenon itself was built anew")));
}

TEST_F(RebuiltPlugin, OneOfTenonsOwnThatWasBuiltAloneCountsAsChanged) {
  ASSERT_EQ(tenon({"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--out", "res"}).code, 0);
  change("res/cells/002-caching/run.json", [](nlohmann::json& json) {
    for (auto& plugin : json["plugins"]) {
      if (plugin["name"] == "caching") plugin["sha256"] = "another";
    }
  });
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("[1/2] finished before"), HasSubstr("caching.so has changed since: cell 2")));
}

TEST_F(RebuiltPlugin, AFolderThatDoesNotSayWhatItStoodOnIsResumedAsItIs) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "one"}).code, 0);
  change("one/run.json", [](nlohmann::json& json) {
    for (const char* key : {"tenon", "plugins", "files", "cells_at_a_time"}) json.erase(key);
  });
  const Said said = tenon({"run", "--resume", "one"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.error, HasSubstr("nothing was run"));
}

}  // namespace
}  // namespace tenon::test
