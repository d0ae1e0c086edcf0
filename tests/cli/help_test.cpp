// Finding one's way: help, version, and mistyped verbs and options.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Help : public Program {
 protected:
  /// The names under "Subcommands:" of a help.
  static std::vector<std::string> subcommands(const std::string& help) {
    std::vector<std::string> names;
    std::istringstream lines(help);
    bool is_list = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Subcommands:") {
        is_list = true;
      } else if (is_list && line.starts_with("  ") && line[2] != ' ') {
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      } else if (is_list && !line.starts_with("  ")) {
        break;
      }
    }
    return names;
  }

  /// The help of this verb, and of all below it.
  void expect_good_help(const std::vector<std::string>& verb) {
    std::vector<std::string> words = verb;
    words.push_back("--help");
    const Said said = tenon(words);
    SCOPED_TRACE(testing::PrintToString(words));
    EXPECT_EQ(said.code, 0);
    EXPECT_THAT(said.out, HasSubstr("xample"));
    EXPECT_THAT(said.out, HasSubstr("  tenon "));
    EXPECT_LE(std::count(said.out.begin(), said.out.end(), '\n'), 40);
    ++helps_;
    for (const std::string& name : subcommands(said.out)) {
      words.back() = name;
      expect_good_help(words);
    }
  }
  int helps_ = 0;
};

TEST_F(Help, OfEveryVerbFitsAScreenAndShowsAnExample) {
  expect_good_help({});
  EXPECT_GE(helps_, 18);
}

TEST_F(Help, ListsEveryVerbThatHasAFile) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/framework/tenon/cli/verbs"))
    files.insert(entry.path().stem());
  const std::vector<std::string> listed = subcommands(tenon({"--help"}).out);
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), files);
}

TEST_F(Help, TheVersionIsOneLine) {
  const Said said = tenon({"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("tenon "));
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 1);
  EXPECT_EQ(tenon({"-V"}).out, said.out);
}

TEST_F(Help, IsAVerbToo) {
  EXPECT_EQ(tenon({"help"}).out, tenon({"--help"}).out);
  EXPECT_EQ(tenon({"help", "trace", "info"}).out, tenon({"trace", "info", "--help"}).out);
  EXPECT_THAT(tenon({"help", "rnu"}).error, HasSubstr("did you mean \"tenon run\"?"));
}

TEST_F(Help, AVerbWithoutTheOneBelowItPrintsItsHelp) {
  EXPECT_EQ(tenon({"trace"}).out, tenon({"trace", "--help"}).out);
  EXPECT_EQ(tenon({}).out, tenon({"--help"}).out);
  EXPECT_EQ(tenon({"trace", "--wide"}).code, 2);
}

TEST_F(Help, AMistypedVerbNamesTheNearest) {
  const Said said = tenon({"rnu", "exp.toml"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_THAT(said.error, AllOf(StartsWith("tenon: "), HasSubstr("did you mean \"tenon run\"?")));
  EXPECT_THAT(tenon({"config", "chek", "exp.toml"}).error, HasSubstr("did you mean \"tenon config check\"?"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--capacity", "8GiB", "replay", "x.trace"},
                                                std::vector<std::string>{"--capacity=8GiB", "replay", "x.trace"}}) {
    EXPECT_THAT(tenon(words).error,
                HasSubstr("--capacity stands before its verb; options come after it: tenon replay --capacity …"));
  }
  EXPECT_THAT(tenon({"xyzzy"}).error, HasSubstr("there are run, plugins"));
}

TEST_F(Help, ListsEveryExitCodeInTheManualToo) {
  for (const Said& said : {tenon({"--help"}), tenon({"man"})}) {
    for (const char* code : {"0 done", "1 the run failed", "5 a plugin would not load", "130 interrupted", "143 ended",
                             "139 for a crash", "finds a difference", "nothing to recommend"})
      EXPECT_THAT(said.out, HasSubstr(code));
  }
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
