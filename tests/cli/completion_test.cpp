// Completion scripts in the shells themselves, and manual pages in man: made from the table that parses the options.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Completion : public Program {
 protected:
  static bool has(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
  }
  /// What the command writes, with the program in its path.
  std::string said_by(const std::string& command) {
    const std::string folder = std::filesystem::path(TENON_PROGRAM).parent_path();
    const std::string line =
        "cd '" + folder_.path().string() + "' && PATH='" + folder + "':$PATH && " + command + " 2>&1";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), &::pclose);
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
      text.append(buffer.data(), got);
    return text;
  }
  /// What bash offers for the last of the words.
  std::string in_bash(const std::string& words) {
    folder_.write("complete.sh", "source <(tenon completion bash)\nCOMP_WORDS=(" + words +
                                     ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\nCOMPREPLY=()\n_tenon 2>/dev/null\n"
                                     "echo \"${COMPREPLY[@]}\"\n");
    return said_by("bash complete.sh");
  }
};

TEST_F(Completion, BashOffersVerbsOptionsAndTheirWords) {
  EXPECT_EQ(in_bash("tenon rep"), "replay\n");
  EXPECT_EQ(in_bash("tenon trace s"), "slice\n");
  EXPECT_EQ(in_bash("tenon replay --cap"), "--capacity\n");
  EXPECT_EQ(in_bash("tenon replay x.trace --format c"), "csv\n");
  EXPECT_EQ(in_bash("tenon replay --format = c"), "csv\n") << "bash splits at =";
  EXPECT_EQ(in_bash("tenon replay -a exp"), "expandable\n");
  EXPECT_EQ(in_bash("tenon completion z"), "zsh\n");
  EXPECT_EQ(in_bash("tenon replay his"), "\n") << "files are bash's own";
}

TEST_F(Completion, FishOffersVerbsOptionsAndTheirWords) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  const auto in_fish = [&](const std::string& line) {
    return said_by("fish --no-config -c 'tenon completion fish | source; complete -C \"" + line + "\"'");
  };
  EXPECT_THAT(in_fish("tenon rep"), HasSubstr("replay\t"));
  EXPECT_THAT(in_fish("tenon trace s"), AllOf(HasSubstr("slice\t"), Not(HasSubstr("run"))));
  EXPECT_THAT(in_fish("tenon replay --cap"), HasSubstr("--capacity\t"));
  EXPECT_THAT(in_fish("tenon replay --format c"), HasSubstr("csv"));
}

TEST_F(Completion, ZshTakesTheScript) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  folder_.write("_tenon", tenon({"completion", "zsh"}).out);
  EXPECT_THAT(said_by("zsh -n _tenon"), IsEmpty());
  EXPECT_EQ(said_by("zsh -f -c 'fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; echo $_comps[tenon]'"),
            "_tenon\n");
}

/// The names of all options in a help, and below.
void gather(const std::string& help, std::set<std::string>& options) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("--");
    if (line.starts_with("  -") && at != std::string::npos)
      options.insert(line.substr(at, line.find_first_of(" ,", at) - at));
  }
}

TEST_F(Completion, EveryScriptHasEveryOptionOfTheHelp) {
  std::set<std::string> options;
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"replay"},
                                               {"tune"},
                                               {"plan"},
                                               {"run"},
                                               {"trace", "slice"},
                                               {"plugins", "test"},
                                               {"view"}}) {
    std::vector<std::string> words = verb;
    words.emplace_back("--help");
    gather(tenon(words).out, options);
  }
  EXPECT_GT(options.size(), 20U);
  for (const std::string shell : {"bash", "zsh"}) {
    const std::string script = tenon({"completion", shell}).out;
    for (const std::string& option : options) EXPECT_THAT(script, HasSubstr(option)) << shell;
  }
  const std::string fish = tenon({"completion", "fish"}).out;
  for (const std::string& option : options) EXPECT_THAT(fish, HasSubstr("-l " + option.substr(2)));
}

TEST_F(Completion, AnUnknownShellNamesTheKnownOnes) {
  for (const char* shell : {"csh", "fisch", "powershell"})
    EXPECT_THAT(tenon({"completion", shell}).error, HasSubstr("; there are bash, zsh and fish")) << shell;
}

TEST_F(Completion, TheManualHasAPageForTheProgramAndEachVerb) {
  const std::string program = tenon({"man"}).out;
  EXPECT_THAT(program, AllOf(HasSubstr(".TH TENON 1"), HasSubstr("\\fBtenon\\-replay\\fR(1)"), HasSubstr("NO_COLOR")));
  EXPECT_THAT(tenon({"man", "replay"}).out, AllOf(HasSubstr(".TH TENON-REPLAY 1"), HasSubstr("\\-\\-capacity")));
  EXPECT_THAT(tenon({"man", "trace"}).out, AllOf(HasSubstr("tenon trace slice"), HasSubstr("\\-\\-until")));
  EXPECT_EQ(tenon({"man", "rplay"}).code, 2);
}

TEST_F(Completion, ManFindsNothingWrongWithThePages) {
  if (!has("man")) GTEST_SKIP() << "man is not installed";
  for (const std::string verb : {"", "replay", "trace", "run", "plugins"}) {
    folder_.write("page.1",
                  tenon(verb.empty() ? std::vector<std::string>{"man"} : std::vector<std::string>{"man", verb}).out);
    EXPECT_THAT(said_by("MANWIDTH=80 man --warnings -l page.1 >/dev/null"), IsEmpty()) << verb;
  }
}

}  // namespace
}  // namespace tenon::test
