// Text on a screen: widths, lines, units, and what a narrow screen takes from a table.
#include <tenon/report/table.h>
#include <tenon/report/text/byte_unit.h>
#include <tenon/report/text/command_line.h>
#include <tenon/report/text/display_width.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kMiB = 1 << 20;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (const std::string& line : lines_of(text)) width = std::max(width, display_width(line));
  return width;
}

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(display_width("caching"), 7U);
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("メモリ"), 6U) << "wide characters";
  EXPECT_EQ(display_width("e\u0301"), 1U) << "a combining accent";
  EXPECT_EQ(display_width("\x1b[1;31mred\x1b[0m"), 3U) << "colours take no room";
  EXPECT_EQ(display_width("\xff"), 1U) << "no UTF-8";
}

TEST(DisplayWidth, ACellIsBrokenAtSpacesThenBehindMarksThenAnywhere) {
  EXPECT_THAT(lines_of_cell("needs a GPU", 7), ElementsAre("needs a", "GPU"));
  EXPECT_THAT(lines_of_cell("/usr/lib/plugins", 9), ElementsAre("/usr/lib/", "plugins"));
  EXPECT_THAT(lines_of_cell("threshold:0.85", 12), ElementsAre("threshold:", "0.85")) << "a number stays whole";
  EXPECT_EQ(longest_piece("a:0.85"), 4U);
  EXPECT_THAT(lines_of_cell("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(lines_of_cell("メモリ", 1), ElementsAre("メ", "モ", "リ")) << "a wide character is never halved";
  EXPECT_THAT(lines_of_cell("", 3), ElementsAre(""));
}

TEST(DisplayWidth, NoLineIsWiderThanTheScreenWhereverItIsIndented) {
  std::string text = "        ";
  for (int i = 0; i < 40; ++i) text += std::string(static_cast<std::size_t>(1 + i * 7 % 5), 'w') + " ";
  for (const std::size_t columns : {20, 24, 33}) {
    std::istringstream lines(wrapped(text, columns));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), columns) << line;
  }
}

TEST(DisplayWidth, SpacesAtTheEndOfALineMakeNoLineOfTheirOwn) {
  EXPECT_EQ(wrapped("  word word   ", 11), "  word word");
  EXPECT_EQ(wrapped("  word word   \nnext", 11), "  word word\nnext");
}

TEST(DisplayWidth, SentencesGoOnBelowTheirFirstWord) {
  EXPECT_EQ(wrapped("one two three\n  four five six\n", 10), "one two\nthree\n  four\n  five six\n");
  EXPECT_EQ(wrapped("  --name  what it is for\n", 20, 10), "  --name  what it is\n          for\n");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
}

TEST(CommandLines, AreContinuedSoThatAShellReadsThemAsOne) {
  EXPECT_EQ(wrapped("  tenon replay one.trace --capacity 8GiB\n", 24),
            "  tenon replay \\\n      one.trace \\\n      --capacity 8GiB\n");
  EXPECT_EQ(wrapped("  tenon run 'my folder/exp.toml'\n", 20), "  tenon run \\\n      'my folder/exp.toml'\n")
      << "a quoted word stays whole";
  EXPECT_EQ(wrapped("  export A=\"one,two,three\"\n", 20), "  export A=\"one,two,three\"\n");
  EXPECT_EQ(wrapped("tenon has allocators in plugins\n", 20), "tenon has allocators\nin plugins\n") << "a sentence";
}

TEST(CommandLines, QuoteWordsThatAShellWouldSplit) {
  EXPECT_EQ(shell_word("out/run-1"), "out/run-1");
  EXPECT_EQ(shell_word("out dir"), "'out dir'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(DisplayWidth, ACommandIsNotBrokenBeforeItsComment) {
  EXPECT_EQ(wrapped("  export A=1   # for old ones\n", 20), "  # for old ones\n  export A=1\n");
  EXPECT_EQ(wrapped("  export A=1   # for old ones\n", 40), "  export A=1   # for old ones\n");
}

TEST(DisplayWidth, ALongWordStaysWholeSinceItIsAPathOrACommand) {
  EXPECT_EQ(wrapped("see /a/very/long/path/of/a/file now", 10), "see\n/a/very/long/path/of/a/file\nnow");
}

TEST(DisplayWidth, AShortenedTextSaysSo) {
  EXPECT_EQ(shortened("replaying", 5), "repl…");
  EXPECT_EQ(shortened("replaying", 9), "replaying");
}

TEST(ByteUnit, IsOneForAColumnAndLeavesThreeDigitsOfTheSmallest) {
  const std::vector<std::int64_t> near = {5800 * kMiB, 5300 * kMiB};
  EXPECT_EQ(ByteUnit(near).show(5800 * kMiB), "5.66 GiB");
  const std::vector<std::int64_t> apart = {1228 * kMiB, 55 * kMiB, 0};
  EXPECT_EQ(ByteUnit(apart).show(1228 * kMiB), "1228.0 MiB");
  EXPECT_EQ(ByteUnit(apart).show(0), "0.0 MiB");
  const std::vector<std::int64_t> far = {20 << 10, 15000 * kMiB};
  EXPECT_EQ(ByteUnit(far).show(15000 * kMiB), "14.65 GiB");
  EXPECT_EQ(ByteUnit(far).show(20 << 10), "20.0 KiB") << "never a zero that is none";
}

/// Figures and a text, as most tables have them.
Table table_of_text() {
  Table table({{"name", "allocator"},
               {"peak_bytes", "peak reserved", true, 3},
               {"calls", "device calls", true, -1},
               {"frees", "device frees", true, -1},
               {"help", "help", true, 1}});
  table.add_row({"caching", Bytes{5800 * kMiB}, std::int64_t{384}, std::int64_t{49}, "best fit over free blocks"});
  table.add_row({"メモリ", Bytes{5300 * kMiB}, std::int64_t{40138}, std::int64_t{1}, "a block for each request"});
  return table;
}

TEST(TableOnAScreen, IsOneLineARowWhereThereIsRoom) {
  const std::string whole = table_of_text().text();
  EXPECT_EQ(table_of_text().text({.columns = 200}), whole);
  EXPECT_EQ(table_of_text().text({.columns = widest(whole)}), whole);
}

TEST(TableOnAScreen, NeverExceedsIt) {
  for (std::size_t columns = 10; columns < 90; ++columns)
    EXPECT_LE(widest(table_of_text().text({.columns = columns})), columns)
        << table_of_text().text({.columns = columns});
}

TEST(TableOnAScreen, BreaksTitlesFirst) {
  EXPECT_THAT(lines_of(table_of_text().text({.columns = 62})),
              ElementsAre("               peak  device  device", "allocator  reserved   calls   frees  help",
                          "---------  --------  ------  ------  -------------------------",
                          "caching    5.66 GiB     384      49  best fit over free blocks",
                          "メモリ     5.18 GiB   40138       1  a block for each request"));
}

TEST(TableOnAScreen, ThenBreaksTexts) {
  EXPECT_THAT(lines_of(table_of_text().text({.columns = 60})),
              ElementsAre("               peak  device  device", "allocator  reserved   calls   frees  help",
                          "---------  --------  ------  ------  -----------------------",
                          "caching    5.66 GiB     384      49  best fit over free",
                          "                                     blocks",
                          "メモリ     5.18 GiB   40138       1  a block for each",
                          "                                     request"));
}

TEST(TableOnAScreen, ThenLeavesOutTheLeastImportantRightmostColumnAndNamesIt) {
  const std::string text = table_of_text().text({.columns = 50});
  EXPECT_THAT(text, Not(HasSubstr("frees  "))) << text;
  EXPECT_THAT(text, HasSubstr("Not shown in 50 columns: device frees. --wide"));
}

TEST(TableOnAScreen, NeverLeavesOutWhatTellsTheRowsApart) {
  Table table({{"trace", "trace"},
               {.key = "allocator", .title = "allocator", .importance = -9, .is_name = true},
               {"peak_bytes", "peak reserved", true, 3},
               {"calls", "device calls", true, -1}});
  for (const char* allocator : {"caching", "direct"})
    table.add_row({"gpt2_adam", allocator, Bytes{5800 * kMiB}, std::int64_t{384}});
  for (std::size_t columns = 12; columns < 50; ++columns) {
    const std::string text = table.text({.columns = columns});
    EXPECT_LE(widest(text), columns) << text;
    EXPECT_THAT(text, AllOf(HasSubstr("cach"), HasSubstr("dire"))) << "in " << columns << " columns";
  }
  const std::string narrow = table.text({.columns = 32});
  EXPECT_THAT(narrow,
              AllOf(ContainsRegex("gpt2_adam  caching +5.66 GiB\n"), ContainsRegex("gpt2_adam  direct +5.66 GiB\n")));
  EXPECT_THAT(narrow, HasSubstr("Not shown in 32 columns: device"));
}

TEST(TableOnAScreen, TurnsItsRowsWhereNamesLeaveNoRoomForAFigure) {
  Table table({{"trace", "trace"},
               {.key = "allocator", .title = "allocator", .is_name = true},
               {"peak_bytes", "peak", true, 3}});
  for (const char* allocator : {"caching", "direct"}) table.add_row({"gpt2_adam", allocator, Bytes{5800 * kMiB}});
  EXPECT_EQ(table.text({.columns = 24}),
            "trace      gpt2_adam\nallocator  caching\npeak       5.66 GiB\n\n"
            "trace      gpt2_adam\nallocator  direct\npeak       5.66 GiB\n");
}

TEST(TableOnAScreen, OfOneRowIsTurnedRatherThanBroken) {
  Table table({{"name", "trace"}, {"peak_bytes", "peak requested"}, {"text", "settings"}});
  table.add_row({"a.trace.gz", Bytes{5800 * kMiB}, "expandable_segments:True"});
  EXPECT_EQ(table.text({.columns = 40}),
            "trace           a.trace.gz\npeak requested  5.66 GiB\nsettings        expandable_segments:True\n");
  EXPECT_EQ(lines_of(table.text()).size(), 3U) << "titles, rule, row: a file has room";
}

TEST(TableOnAScreen, WideCharactersAreAligned) {
  Table table({{"name", "name"}, {"n", "n"}});
  table.add_row({"メモリ", std::int64_t{1}});
  table.add_row({"caching", std::int64_t{2}});
  EXPECT_EQ(table.text(), "name     n\n-------  -\nメモリ   1\ncaching  2\n");
}

TEST(TableOnAScreen, HasColoursOnlyWhereTheScreenHas) {
  Table table({{"name", "name"}, {"fits", "fits"}});
  table.add_row({"caching", "no"});
  table.tone("fits", Tone::kBad);
  EXPECT_THAT(table.text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(table.text({.has_colour = true}), HasSubstr("\x1b["));
  EXPECT_EQ(widest(table.text({.has_colour = true})), widest(table.text()));
}

}  // namespace
}  // namespace tenon::test
