// Finding one's way: help, version, and mistyped verbs and options.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Help : public Program {};

const std::vector<std::vector<std::string>> kVerbs = {{},
                                                      {"run"},
                                                      {"replay"},
                                                      {"tune"},
                                                      {"trace"},
                                                      {"view"},
                                                      {"plugins"},
                                                      {"plugins", "list"},
                                                      {"plugins", "info"},
                                                      {"plugins", "test"},
                                                      {"devices"},
                                                      {"config"},
                                                      {"config", "check"},
                                                      {"config", "show"},
                                                      {"config", "explain"},
                                                      {"doctor"},
                                                      {"new"},
                                                      {"new", "allocator"}};

TEST_F(Help, OfEveryVerbFitsAScreenAndShowsAnExample) {
  for (std::vector<std::string> verb : kVerbs) {
    verb.push_back("--help");
    const Said said = tenon(verb);
    SCOPED_TRACE(testing::PrintToString(verb));
    EXPECT_EQ(said.code, 0);
    EXPECT_THAT(said.out, HasSubstr("xample"));
    EXPECT_THAT(said.out, HasSubstr("  tenon "));
    EXPECT_LE(std::count(said.out.begin(), said.out.end(), '\n'), 40);
  }
}

TEST_F(Help, TheVersionIsOneLine) {
  const Said said = tenon({"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("tenon "));
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 1);
}

TEST_F(Help, AMistypedVerbNamesTheNearest) {
  const Said said = tenon({"rnu", "exp.toml"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_THAT(said.error, AllOf(StartsWith("tenon: "), HasSubstr("did you mean \"tenon run\"?")));
  EXPECT_THAT(tenon({"config", "chek", "exp.toml"}).error, HasSubstr("did you mean \"tenon config check\"?"));
  EXPECT_THAT(tenon({"xyzzy"}).error, HasSubstr("there are run, plugins"));
}

TEST_F(Help, AMistypedOptionNamesTheNearest) {
  const Said said = tenon({"run", "exp.toml", "--dryrun"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("unknown option --dryrun"), HasSubstr("did you mean --dry-run?"),
                                HasSubstr("tenon run --help")));
  EXPECT_EQ(tenon({"plugins", "list", "--format", "yaml"}).code, 2);
}

TEST_F(Help, MissingWordsAreAUsageError) {
  EXPECT_EQ(tenon({}).code, 2);
  EXPECT_EQ(tenon({"run"}).code, 2);
  EXPECT_EQ(tenon({"config"}).code, 2);
  EXPECT_EQ(tenon({"new", "allocator"}).code, 2);
}

}  // namespace
}  // namespace tenon::test
