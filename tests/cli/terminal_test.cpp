// Screens of every verb on terminals of several widths, with colours and without: no line is longer than the terminal.
#include "cli/terminal.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <sstream>

namespace tenon::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr unsigned short kWidths[] = {60, 80, 120, 200};
const std::string kTrace = TENON_SOURCE_DIR "/examples/traces/gpt2_adam.trace.gz";

class Terminal : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::filesystem::create_symlink(kTrace, folder_.path() / "gpt2.trace.gz");
    // A name of wide characters.
    folder_.write("メモリ.trace", "a 0 8388608 0\na 1 16777216 0\nf 0\nf 1\n");
  }

  Shown on(unsigned short columns, const std::vector<std::string>& words,
           const std::map<std::string, std::string>& variables = {}) {
    return tenon_on_terminal(folder_, words, columns, variables);
  }

  static void expect_fits(const Shown& shown, unsigned short columns) {
    for (const std::string& line : shown.lines) EXPECT_LE(columns_of(line), columns) << line;
  }

  /// Its screens at every width; colours change no text.
  void expect_fits_everywhere(const std::vector<std::string>& words, int code = 0) {
    SCOPED_TRACE(testing::PrintToString(words));
    for (const unsigned short columns : kWidths) {
      SCOPED_TRACE(columns);
      const Shown shown = on(columns, words);
      EXPECT_EQ(shown.code, code) << shown.bytes;
      EXPECT_FALSE(shown.lines.empty());
      expect_fits(shown, columns);
    }
    const Shown plain = on(80, words, {{"NO_COLOR", "1"}});
    EXPECT_THAT(plain.bytes, Not(HasSubstr("\x1b["))) << "NO_COLOR";
    expect_fits(plain, 80);
  }

  /// Every help, of the verbs below too.
  void expect_helps_fit(const std::vector<std::string>& verb) {
    std::vector<std::string> words = verb;
    words.push_back("--help");
    expect_fits_everywhere(words);
    std::istringstream lines(tenon(words).out);
    bool is_list = false;
    std::vector<std::string> below;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Subcommands:") {
        is_list = true;
      } else if (is_list && line.starts_with("  ") && line[2] != ' ') {
        below.push_back(line.substr(2, line.find(' ', 2) - 2));
      } else if (is_list && !line.starts_with("  ")) {
        break;
      }
    }
    for (const std::string& name : below) {
      words.back() = name;
      expect_helps_fit(words);
    }
  }
};

TEST_F(Terminal, HelpOfEveryVerbFits) { expect_helps_fit({}); }

TEST_F(Terminal, TablesOfTheMachineFit) {
  expect_fits_everywhere({"devices"});
  expect_fits_everywhere({"plugins", "list"});
  expect_fits_everywhere({"plugins", "info", "caching"});
  const Shown doctor = on(60, {"doctor"});
  expect_fits(doctor, 60);
}

TEST_F(Terminal, TablesOfConfigurationsFit) {
  expect_fits_everywhere({"config", "check", "exp.toml"});
  expect_fits_everywhere({"config", "explain", "exp.toml", "train"});
  expect_fits_everywhere({"config", "explain", "exp.toml", "train.lr"});
}

TEST_F(Terminal, TablesOfHistoriesFit) {
  expect_fits_everywhere({"trace", "info", "gpt2.trace.gz"});
  expect_fits_everywhere({"trace", "info", "gpt2.trace.gz", "メモリ.trace"});
  expect_fits_everywhere({"trace", "diff", "gpt2.trace.gz", "メモリ.trace"}, 1);
  expect_fits_everywhere({"trace", "convert", "gpt2.trace.gz", "out.tenon"});
  expect_fits_everywhere({"trace", "slice", "gpt2.trace.gz", "out.tenon", "--from", "10"});
  expect_fits_everywhere({"view", "gpt2.trace.gz", "-o", "page.html"});
}

TEST_F(Terminal, TablesOfReplaysFit) {
  expect_fits_everywhere({"replay", "gpt2.trace.gz", "--capacity", "5800MiB", "--repeat", "1"});
  expect_fits_everywhere({"replay", "gpt2.trace.gz", "メモリ.trace", "-a", "caching:max_split_size=64MiB"});
  expect_fits_everywhere({"doctor", "gpt2.trace.gz", "--capacity", "5800MiB"});
}

TEST_F(Terminal, TheAdviceOfTuneFits) {
  for (const unsigned short columns : kWidths) {
    const Shown shown = on(columns, {"tune", "gpt2.trace.gz", "--capacity", "8GiB", "--budget", "1s"});
    EXPECT_EQ(shown.code, 0) << shown.bytes;
    expect_fits(shown, columns);
  }
}

TEST_F(Terminal, TablesOfRunsFit) {
  expect_fits_everywhere({"run", "exp.toml", "train.epochs=1", "--out", "out"});
  expect_fits_everywhere(
      {"run", "exp.toml", "train.epochs=1", "allocator.name=direct,caching", "--sweep", "--dry-run"});
  const Shown sweep =
      on(60, {"run", "exp.toml", "train.epochs=1", "allocator.name=direct,caching", "--sweep", "--out", "sweep"});
  EXPECT_EQ(sweep.code, 0) << sweep.bytes;
  expect_fits(sweep, 60);
}

TEST_F(Terminal, ANewProjectAndItsTestFit) {
  for (const unsigned short columns : kWidths)
    expect_fits(on(columns, {"new", "allocator", "mine" + std::to_string(columns)}), columns);
  expect_fits(on(60, {"plugins", "test", "direct", "--only", "zero"}), 60);
}

TEST_F(Terminal, TheTableOfABenchFits) {
  const Shown shown = on(60, {"bench", "direct", "caching", "-w", "hot/4KiB", "--rounds", "2"});
  EXPECT_EQ(shown.code, 0) << shown.bytes;
  expect_fits(shown, 60);
}

TEST_F(Terminal, ErrorsFit) {
  expect_fits_everywhere({"replay", "no-such-file-of-this-name.trace.gz", "--capacity", "8GiB"}, 2);
  expect_fits_everywhere({"rnu"}, 2);
  expect_fits_everywhere({"run", "exp.toml", "train.batch_sise=64"}, 2);
}

TEST_F(Terminal, WideShowsEveryColumnAndANarrowTableNamesWhatItLeavesOut) {
  const Shown narrow = on(60, {"replay", "gpt2.trace.gz"});
  EXPECT_THAT(narrow.bytes, HasSubstr("--wide shows all"));
  EXPECT_THAT(narrow.bytes, HasSubstr("OOMs")) << "what decides stays";
  const Shown wide = on(60, {"replay", "gpt2.trace.gz", "--wide"});
  EXPECT_THAT(wide.bytes, Not(HasSubstr("--wide shows all")));
  EXPECT_THAT(wide.lines.front(), HasSubstr("device allocs"));
}

TEST_F(Terminal, ColoursAreForTerminalsAndForThoseWhoForceThem) {
  EXPECT_THAT(on(80, {"devices"}).bytes, HasSubstr("\x1b["));
  EXPECT_THAT(on(80, {"devices"}, {{"TERM", "dumb"}}).bytes, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(on(80, {"devices"}, {{"CLICOLOR", "0"}}).bytes, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(tenon({"devices"}).out, Not(HasSubstr("\x1b["))) << "a pipe";
  EXPECT_THAT(tenon({"devices"}, {{"CLICOLOR_FORCE", "1"}}).out, HasSubstr("\x1b["));
  EXPECT_THAT(tenon({"devices"}, {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}).out, Not(HasSubstr("\x1b[")));
}

TEST_F(Terminal, APipeGetsTheWholeTableUnlessColumnsIsSet) {
  EXPECT_THAT(tenon({"replay", "gpt2.trace.gz"}).out, HasSubstr("device allocs"));
  const std::string narrow = tenon({"replay", "gpt2.trace.gz"}, {{"COLUMNS", "60"}}).out;
  EXPECT_THAT(narrow, HasSubstr("--wide shows all"));
  EXPECT_EQ(tenon({"replay", "gpt2.trace.gz", "--format", "csv"}, {{"COLUMNS", "60"}}).out.find("--wide"),
            std::string::npos)
      << "programs get all";
}

TEST_F(Terminal, JsonOnATerminalIsWhole) {
  std::string json;
  for (const std::string& line : on(60, {"trace", "info", "gpt2.trace.gz", "--format", "json"}).lines) json += line;
  EXPECT_TRUE(nlohmann::json::accept(json)) << json;
}

}  // namespace
}  // namespace tenon::test
