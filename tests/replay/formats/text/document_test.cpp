// The document of the text form against its reader: every example gives the events or the refusal that stands under it,
// and every word that the reader knows stands in the document.
#include "support/scratch_folder.h"

#include "replay/formats/text/document.h"
#include "replay/support.h"

#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/header_keys.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace tenon::replay {
namespace {

TEST(TextDocument, EveryExampleDoesWhatStandsUnderIt) {
  const std::vector<Example> all = examples();
  ASSERT_GT(all.size(), 30U);
  for (const Example& example : all) {
    SCOPED_TRACE(fmt::format("{}:{}", kDocument, example.line));
    ASSERT_TRUE(example.kind == "events" || example.kind == "refused") << "no outcome follows";
    if (example.kind == "refused") {
      EXPECT_EQ(refusal_of(example.history) + "\n", example.outcome);
    } else {
      EXPECT_EQ(told(read_one(example.history, {.with_columns = true})), example.outcome);
    }
  }
}

TEST(TextDocument, WhatIsTakenIsTheSameWhenItWasWrittenAndReadAgain) {
  const std::string path = test::scratch_folder() + "again.trace";
  for (const Example& example : examples()) {
    if (example.kind != "events") continue;
    SCOPED_TRACE(fmt::format("{}:{}", kDocument, example.line));
    const Trace first = read_one(example.history, {.with_columns = true});
    write_trace(first, path);
    const auto events = [](Trace trace) {
      // Handles are written as indices.
      for (std::size_t i = 0; i < trace.streams.size(); ++i)
        if (trace.streams[i] > 0xffff) trace.streams[i] = i;
      std::istringstream lines(told(trace));
      std::string text;
      for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("header ")) text += line + "\n";  // figures are added
      return text;
    };
    EXPECT_EQ(events(read_traces(path, {.with_columns = true}).front()), events(first));
  }
}

std::string histories_of_examples() {
  std::string histories;
  for (const Example& example : examples()) histories += "\n" + example.history;
  return histories;
}

TEST(TextDocument, EveryWordOfTheReaderStandsInItAndIsUsedInAnExample) {
  const std::string text = document(), histories = histories_of_examples();
  for (const char record : kTextRecords) {
    EXPECT_NE(text.find(fmt::format("\n| `{}", record)), std::string::npos) << record;
    EXPECT_NE(histories.find(fmt::format("\n{}", record)), std::string::npos) << record;
  }
  for (const std::string_view mark : text_marks::kAll) {
    EXPECT_NE(text.find(fmt::format("\n| `m {}", mark)), std::string::npos) << mark;
    EXPECT_NE(histories.find(fmt::format("\nm {}", mark)), std::string::npos) << mark;
  }
  for (const HeaderKey& known : kHeaderKeys) {
    const std::string key = fmt::format("{}{}", known.key, known.key.ends_with(' ') ? "1" : "");
    EXPECT_NE(text.find(fmt::format("`{}`", key)), std::string::npos) << key;
    EXPECT_NE(histories.find(fmt::format("\n# {}: ", key)), std::string::npos) << key;
  }
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const std::string_view purpose = name_of(static_cast<Purpose>(i));
    EXPECT_NE(text.find(fmt::format("`{}`", purpose)), std::string::npos) << purpose;
    EXPECT_NE(histories.find(fmt::format("\n#p {}\n", purpose)), std::string::npos) << purpose;
  }
}

/// What stands in the first column of the document's tables: "a ID SIZE STREAM", "events".
std::vector<std::string> words_of_tables() {
  std::vector<std::string> words;
  std::istringstream lines(document());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    std::istringstream codes(line.substr(0, line.find(" | ", 2)));
    std::string code;
    for (int i = 0; std::getline(codes, code, '`'); ++i)
      if (i % 2 == 1) words.push_back(code);
  }
  return words;
}

TEST(TextDocument, EveryRowOfItsTablesIsTriedByAnExample) {
  const std::string histories = histories_of_examples();
  const std::vector<std::string> words = words_of_tables();
  ASSERT_GT(words.size(), 35U);
  for (const std::string& word : words) {
    // Up to the first word in capitals, which stands for what the example has: "#t +LATER", "m tenon:failed ID".
    const auto capital = std::ranges::find_if(word, [](char c) { return c >= 'A' && c <= 'Z'; });
    const std::string fixed(word.begin(), capital);
    const bool is_record = fixed.size() == 1 || fixed[1] == ' ' || fixed[0] == '#';
    const std::string wanted = is_record ? fixed : fixed + ": ";
    EXPECT_NE(histories.find((is_record ? "\n" : "\n# ") + wanted), std::string::npos) << word;
  }
}

TEST(TextDocument, KnowsNoRecordAndNoMarkThatTheReaderDoesNot) {
  std::istringstream lines(document());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `") || line.find("` | ") == std::string::npos) continue;
    const std::string word = line.substr(3, line.find('`', 3) - 3);
    if (word.size() > 1 && word[1] != ' ') continue;  // a key
    EXPECT_NE(kTextRecords.find(word[0]), std::string_view::npos) << line;
    if (!word.starts_with("m ") || word == "m NAME") continue;
    EXPECT_TRUE(std::ranges::any_of(text_marks::kAll, [&](auto mark) {
      return word.starts_with(fmt::format("m {}", mark));
    })) << line;
  }
}

}  // namespace
}  // namespace tenon::replay
