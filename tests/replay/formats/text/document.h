// The document of the text form, as its tests read it: its text, its sentences, its examples, and a trace in its words.
#pragma once

#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace.h>

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::replay {

inline constexpr char kDocument[] = TENON_SOURCE_DIR "/framework/tenon/replay/text_histories.md";

inline std::string document() {
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
inline std::string unescaped(const std::string& text) {
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
inline std::vector<Example> examples() {
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

/// What stands outside of examples, tables and headings, a sentence each, on one line.
inline std::vector<std::string> sentences() {
  std::vector<std::string> all;
  std::string paragraph;
  const auto cut = [&] {
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 2 < paragraph.size(); ++i) {
      const char next = paragraph[i + 2];
      const bool is_start = std::isupper(static_cast<unsigned char>(next)) != 0 || next == '`' || next == '(';
      if (paragraph[i] != '.' || paragraph[i + 1] != ' ' || !is_start) continue;
      all.push_back(paragraph.substr(begin, i + 1 - begin));
      begin = i + 2;
    }
    if (begin < paragraph.size()) all.push_back(paragraph.substr(begin));
    paragraph.clear();
  };
  std::istringstream lines(document());
  bool is_example = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_fence = line.starts_with("```");
    is_example ^= is_fence;
    if (is_example || is_fence || line.empty() || line.starts_with("|") || line.starts_with("#")) {
      cut();
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  cut();
  return all;
}

/// A trace in the words of the document.
inline std::string told(Trace trace) {
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

}  // namespace tenon::replay
