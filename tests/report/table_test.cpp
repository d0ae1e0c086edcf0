// Tables in their four formats.
#include <tenon/core/error.h>
#include <tenon/report/table.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Table example() {
  Table table({{"name", "name"},
               {"peak_bytes", "peak"},
               {"excess", "excess"},
               {"nothing", "nothing"},
               {"hash", "hash", false}});
  table.add_row({"one, \"two\"", Bytes{3 << 20}, Ratio{0.25}, {}, "ab"});
  table.add_row({"pipe | line\nbreak", Bytes{512}, Ratio{0.1}, {}, "cd"});
  return table;
}

TEST(Table, ForPeopleHasALineForEachRowWhateverIsInIt) {
  Table table({{"name", "name"}, {"events", "events"}});
  table.add_row({std::string("two\nlines\r"), std::int64_t{1}});
  EXPECT_NE(table.text().find("two\\x0alines\\x0d"), std::string::npos) << table.text();
}

TEST(Table, ForPeopleIsAlignedWithUnitsAndWithoutEmptyColumns) {
  Table table({{"name", "name"}, {"peak_bytes", "peak"}, {"ms", "ms"}, {"gone", "gone"}});
  table.add_row({"caching", Bytes{3 << 20}, Real{1.234, 1}, {}});
  table.add_row({"größe", Bytes{512}, Real{12, 1}, {}});
  EXPECT_EQ(table.text(),
            "name            peak    ms\n-------  -----------  ----\ncaching  3072.00 KiB   1.2\ngröße       0.50 KiB  "
            "12.0\n");
}

TEST(Table, AsJsonKeepsIntegersAndExactNumbers) {
  const auto json = nlohmann::json::parse(render(example(), TableFormat::kJson, "{\"host\": \"h\"}"));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["environment"]["host"], "h");
  EXPECT_EQ(json["rows"][0]["peak_bytes"], 3 << 20);
  EXPECT_TRUE(json["rows"][0]["peak_bytes"].is_number_integer());
  EXPECT_EQ(json["rows"][1]["excess"], 0.1);
  EXPECT_TRUE(json["rows"][0]["nothing"].is_null());
  EXPECT_EQ(json["rows"][0]["hash"], "ab") << "machines get every column";
  EXPECT_EQ(json["rows"][1]["name"], "pipe | line\nbreak");
}

TEST(Table, AsJsonSurvivesWhatJsonLacks) {
  Table table({{"x", "x"}, {"name", "name"}});
  table.add_row({Real{std::numeric_limits<double>::quiet_NaN()}, std::string("\xff\x01")});
  const auto json = nlohmann::json::parse(render(table, TableFormat::kJson, "{}"));
  EXPECT_TRUE(json["rows"][0]["x"].is_null());
  EXPECT_EQ(
      nlohmann::json::parse(render(Table(std::vector<Column>{{"x", "x"}}), TableFormat::kJson, "{}"))["rows"].size(),
      0U);
}

TEST(Table, AsCsvQuotesWhatNeedsIt) {
  EXPECT_EQ(render(example(), TableFormat::kCsv, ""),
            "name,peak_bytes,excess,nothing,hash\n\"one, \"\"two\"\"\",3145728,0.25,,ab\n\"pipe | "
            "line\nbreak\",512,0.1,,cd\n");
}

TEST(Table, AsMarkdownKeepsItsColumns) {
  const std::string text = render(example(), TableFormat::kMarkdown, "");
  EXPECT_THAT(text, HasSubstr("| name | peak | excess |\n|---|---:|---:|\n"));
  EXPECT_THAT(text, HasSubstr("| pipe \\| line break | 0.50 KiB | 10.0 % |"));
  EXPECT_THAT(text, Not(HasSubstr("hash")));
}

TEST(Table, EachSignThatAFormatGivesAMeaningIsEscapedWhereverItStands) {
  const auto rendered = [](const std::string& cell, TableFormat format) {
    Table table(std::vector<Column>{{"x", "x"}});
    table.add_row({cell});
    return render(table, format, "");
  };
  EXPECT_EQ(rendered("a\rb", TableFormat::kCsv), "x\n\"a\rb\"\n");
  EXPECT_EQ(rendered("a\nb", TableFormat::kCsv), "x\n\"a\nb\"\n");
  EXPECT_EQ(rendered("\"", TableFormat::kCsv), "x\n\"\"\"\"\n");
  EXPECT_EQ(rendered("plain", TableFormat::kCsv), "x\nplain\n");
  EXPECT_THAT(rendered("||a|", TableFormat::kMarkdown), HasSubstr("| \\|\\|a\\| |"));
  EXPECT_THAT(rendered("<<b><", TableFormat::kMarkdown), HasSubstr("| &lt;&lt;b>&lt; |"));
}

TEST(Table, AnUnknownFormatListsTheKnownOnes) {
  EXPECT_EQ(parse_table_format("csv"), TableFormat::kCsv);
  try {
    parse_table_format("yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("table, json, csv, markdown"));
  }
}

}  // namespace
}  // namespace tenon::test
