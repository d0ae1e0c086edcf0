// The document of the text form against its reader: every example gives the events or the refusal that stands under it,
// and every word that the reader knows stands in the document.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/header_keys.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tenon::replay {
namespace {

constexpr char kDocument[] = TENON_SOURCE_DIR "/framework/tenon/replay/text_histories.md";

std::string document() {
  std::ostringstream text;
  text << std::ifstream(kDocument).rdbuf();
  return text.str();
}

struct Example {
  int line = 0;  ///< of the document
  std::string history;
  std::string kind;  ///< "events" or "refused"
  std::string outcome;
};

/// `\t`, `\r` and `\xHH` as the bytes that they stand for.
std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text[++i] == 'x') {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      bytes += text[i] == 't' ? '\t' : '\r';
    }
  }
  return bytes;
}

/// A block ```trace, and the block that follows it.
std::vector<Example> examples() {
  std::vector<Example> all;
  std::istringstream lines(document());
  std::string line, fence;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("```")) {
      fence = line.substr(3);
      if (fence == "trace") all.push_back({.line = number});
      if (fence == "events" || fence == "refused") all.back().kind = fence;
    } else if (fence == "trace") {
      all.back().history += unescaped(line) + "\n";
    } else if (!fence.empty()) {
      all.back().outcome += line + "\n";
    }
  }
  return all;
}

/// A trace in the words of the document.
std::string told(Trace trace) {
  std::string text;
  std::map<std::uint32_t, std::uint64_t> block_in;  // by slot
  std::uint64_t blocks = 0, event_number = 0;
  const auto& [times, purposes] = trace.columns;
  std::size_t next_failure = 0;
  for (const TraceEvent& event : trace.events) {
    const std::uint64_t stream = trace.streams[event.stream];
    const RecordedOom* failed = is_counted(event.kind) ? trace.failure_at(event_number++, next_failure) : nullptr;
    if (event.kind == EventKind::kAllocate) block_in[event.slot] = blocks++;
    const std::uint64_t block = block_in[event.slot];
    switch (event.kind) {
      case EventKind::kAllocate:
        text += fmt::format("allocate block {}: {} bytes on stream {}", block, event.bytes, stream);
        if (failed)
          text += fmt::format("; it ran out of memory with {} bytes reserved and {} left", failed->reserved_bytes,
                              failed->device_free_bytes);
        if (block < purposes.size()) text += fmt::format("; for {}", name_of(purposes[block]));
        break;
      case EventKind::kFree:
        text += fmt::format("free block {}{}", block, event.deferred ? "; it waits for a stream" : "");
        break;
      case EventKind::kUse:
        text += fmt::format("use block {} on stream {}", block, stream);
        break;
      case EventKind::kEmptyCache:
        text += "empty the cache";
        break;
      case EventKind::kMark:
        text += fmt::format("mark '{}'", trace.marks[event.bytes]);
        break;
      case EventKind::kFreeCompleted:
        text += fmt::format("block {} waits no longer", block);
        break;
    }
    if (is_counted(event.kind) && !times.empty()) text += fmt::format("; at {}", times[event_number - 1]);
    text += '\n';
  }
  if (trace.facts.seeded_blocks != 0)
    text += fmt::format("{} blocks lived before the recording\n", trace.facts.seeded_blocks);
  for (const auto& [key, value] : trace.header) text += fmt::format("header {} = {}\n", key, value);
  for (const auto& [key, value] : recorded_lines(trace)) text += fmt::format("{} = {}\n", key, value);
  return text;
}

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

TEST(TextDocument, StatesHowManyStreamsThereMayBe) {
  ASSERT_NE(document().find("65,535 streams"), std::string::npos);
  std::string history;
  for (int i = 0; i < 65'535; ++i) history += fmt::format("a {} 8 {}\n", i, 7 * i);
  EXPECT_EQ(read_one(history).streams.size(), 65'535U);
  EXPECT_THAT(refusal_of(history + "a 65535 8 1\n"), testing::HasSubstr("more than 65535 streams"));
}

TEST(TextDocument, StatesWhenStreamsAreWrittenAsIndices) {
  ASSERT_NE(document().find("where one is 65,536 or more"), std::string::npos);
  const std::string path = test::scratch_folder() + "streams.trace";
  for (const auto& [stream, is_index] : {std::pair(65'535, false), {65'536, true}}) {
    write_trace(read_one(fmt::format("a 0 8 {}\n", stream)), path);
    const Trace again = read_traces(path).front();
    EXPECT_EQ(again.streams.front(), is_index ? 0 : stream);
    const auto handles = again.header.find("stream_ids");
    EXPECT_EQ(handles == again.header.end() ? "" : handles->second, is_index ? "65536" : "");
  }
}

TEST(TextDocument, StatesHowManyHeadersAreKept) {
  ASSERT_NE(document().find("the first thousand are kept, and a remark counts the rest"), std::string::npos);
  std::string history;
  for (int i = 0; i < 1003; ++i) history += fmt::format("# note of mine {}: {}\n", i, i);
  const Trace trace = read_one(history + "# name: kept\na 0 8 0\n");
  EXPECT_EQ(trace.header.size(), 1001U) << "with the name, whose meaning is known";
  EXPECT_EQ(trace.notes, std::vector<std::string>{"3 comments beyond the first 1000 are not kept"});
}

TEST(TextDocument, StatesHowManyRemarksAreWritten) {
  ASSERT_NE(document().find("more than 32 remarks, 31 are written, and a last one that counts the others"),
            std::string::npos);
  const std::string path = test::scratch_folder() + "remarks.trace";
  for (const int count : {32, 33, 40}) {
    Trace trace = read_one("a 0 8 0\n");
    for (int i = 0; i < count; ++i) trace.notes.push_back(fmt::format("remark of mine {}", i));
    write_trace(trace, path);
    const std::vector<std::string> notes = read_traces(path).front().notes;
    ASSERT_EQ(notes.size(), 32U) << count;
    EXPECT_EQ(notes[30], "remark of mine 30");
    EXPECT_EQ(notes[31], count == 32 ? "remark of mine 31" : fmt::format("{} more remarks are not kept", count - 31));
  }
}

TEST(TextDocument, StatesHowLongATextOfTheRecordingMayBe) {
  ASSERT_NE(document().find("are read up to 4,096 bytes"), std::string::npos);
  const std::string text(5000, 'x');
  const Trace trace =
      read_one("# recorded_conf: " + text + "\n# recorded_distrust: " + text + "\n# remark 1: " + text + "\na 0 8 0\n");
  EXPECT_EQ(trace.recorded->pytorch_conf.size(), 4096U);
  EXPECT_EQ(trace.distrust.size(), 4096U);
  EXPECT_EQ(trace.notes.at(0).size(), 4096U);
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
