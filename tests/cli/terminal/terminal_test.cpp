// What a terminal gets and a pipe does not: tables of its width, and colours. All screens are in screens_test.cpp.
#include "cli/terminal/terminal.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTrace = TENON_SOURCE_DIR "/examples/traces/gpt2_adam.trace.gz";

class Terminal : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::filesystem::create_symlink(kTrace, folder_.path() / "gpt2.trace.gz");
  }

  Shown on(unsigned short columns, const std::vector<std::string>& words,
           const std::map<std::string, std::string>& variables = {}) {
    return tenon_on_terminal(folder_, words, columns, variables);
  }
};

TEST_F(Terminal, WideShowsEveryColumnAndANarrowTableNamesWhatItLeavesOut) {
  const Shown narrow = on(60, {"replay", "gpt2.trace.gz"});
  EXPECT_THAT(narrow.bytes, HasSubstr("--wide shows all"));
  EXPECT_THAT(narrow.bytes, HasSubstr("OOMs")) << "what decides stays";
  const Shown wide = on(60, {"replay", "gpt2.trace.gz", "--wide"});
  EXPECT_THAT(wide.bytes, Not(HasSubstr("--wide shows all")));
  EXPECT_THAT(wide.lines.front(), HasSubstr("device allocs"));
}

TEST_F(Terminal, ANarrowTableOfSeveralHistoriesStillSaysWhichRowIsWhose) {
  folder_.write("a_history_with_a_long_name.trace", "a 0 8388608 0\nf 0\n");
  const Shown shown = on(60, {"replay", "gpt2.trace.gz", "a_history_with_a_long_name.trace", "--repeat", "1"});
  for (const char* allocator : {"caching", "direct", "expandable", "ideal"}) {
    const auto rows = std::ranges::count_if(shown.lines, [&](const std::string& line) {
      return line.find(std::string(" ") + allocator + " ") != std::string::npos;
    });
    EXPECT_GE(rows, 2) << allocator << "\n" << shown.bytes;
  }
  EXPECT_THAT(shown.bytes, HasSubstr("peak"));
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
