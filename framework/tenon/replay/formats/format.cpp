// The table of formats, and what is said of all of them. CMake writes history_formats.inc from formats.cmake.
#include <tenon/replay/formats/format.h>

#include <tenon/core/options.h>
#include <tenon/core/text/counted.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tenon::replay {

#define ROW(name) const Format& name##_format();
#include "history_formats.inc"
#undef ROW

namespace {

std::string_view without_gz(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path;
}

/// "a, b or c".
std::string listed(const std::vector<std::string>& words, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? std::string(last_separator) : ", ") + words[i];
  return text;
}

template <class Word>
std::vector<std::string> words_of(bool (*is_meant)(const Format&), Word word) {
  std::vector<std::string> words;
  for (const Format* const format : formats()) {
    if (is_meant(*format)) words.push_back(word(*format));
  }
  return words;
}

bool is_written(const Format& format) { return format.write != nullptr; }
bool is_read(const Format& format) { return format.read != nullptr; }
bool has_ending(const Format& format) { return is_written(format) && !format.endings.empty(); }

/// "; did you mean x.trace.gz?"
std::string nearest_ending_hint(std::string_view path) {
  const std::string_view bare = without_gz(path);
  const std::size_t dot = bare.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::vector<std::string> endings;
  for (const Format* const format : formats()) {
    if (has_ending(*format)) endings.emplace_back(format->endings.front());  // those that the message lists
  }
  const std::string near = nearest_name(bare.substr(dot), endings);
  if (near.empty()) return {};
  return fmt::format("; did you mean {}{}{}?", bare.substr(0, dot), near, path.substr(bare.size()));
}

}  // namespace

std::vector<std::string> left_out_of_plain(const Trace& trace) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, const char* one, const char* several = "") {
    if (count != 0) parts.push_back(counted(count, one, several));
  };
  const auto count = [&](EventKind kind) {
    return static_cast<std::uint64_t>(std::ranges::count(trace.events, kind, &TraceEvent::kind));
  };
  add(count(EventKind::kUse), "use on other streams", "uses on other streams");
  add(trace.facts.deferred_frees, "free that waited (it is immediate there)",
      "frees that waited (they are immediate there)");
  add(count(EventKind::kEmptyCache), "emptied cache");
  add(trace.facts.marks, "mark");
  if (trace.facts.seeded_blocks != 0)
    parts.push_back(fmt::format("which blocks are older than the recording ({})", trace.facts.seeded_blocks));
  if (!trace.columns.times_us.empty()) parts.emplace_back("when events were");
  if (!trace.columns.purposes.empty()) parts.emplace_back("what blocks are for");
  if (trace.recorded) parts.push_back("what is known of the recording (settings, reserved memory)");
  return parts;
}

std::vector<std::string> left_out_without_streams(const Trace& trace) {
  std::vector<std::string> parts = left_out_of_plain(trace);
  if (trace.stream_count() > 1) parts.push_back(fmt::format("{} streams (there is one there)", trace.stream_count()));
  return parts;
}

std::span<const Format* const> formats() {
  static const std::array all = {
#define ROW(name) &name##_format(),
#include "history_formats.inc"
#undef ROW
  };
  return all;
}

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  return found == formats().end() ? nullptr : *found;
}

const Format* format_of_ending(std::string_view path) {
  const auto found = std::ranges::find_if(formats(), [&](const Format* format) {
    return is_written(*format) && std::ranges::any_of(format->endings, [&](std::string_view ending) {
             return without_gz(path).ends_with(ending);
           });
  });
  return found == formats().end() ? nullptr : *found;
}

const Format& format_of_name(const std::string& path) {
  if (const Format* const format = format_of_ending(path)) return *format;
  const auto known = words_of(
      has_ending, [](const Format& format) { return fmt::format("{} ({})", format.endings[0], format.written_as); });
  throw ConfigError(fmt::format("{}: the ending says no format{}; {} do, each also with .gz; or use --to", path,
                                nearest_ending_hint(path), listed(known, " and ")));
}

const Format& written_format(std::string_view name) {
  const Format* const format = find_format(name);
  if (format != nullptr && is_written(*format)) return *format;
  throw ConfigError(fmt::format("unknown format \"{}\": --to takes {}", name, written_names()));
}

std::string written_names() {
  return listed(words_of(is_written, [](const Format& format) { return std::string(format.name); }), " or ");
}

std::string written_endings() {
  return listed(words_of(has_ending, [](const Format& format) { return std::string(format.endings[0]); }), ", ");
}

std::string read_files() {
  return listed(words_of(is_read, [](const Format& format) { return std::string(format.files); }), ", ");
}

}  // namespace tenon::replay
