// Recordings in words.
#include <tenon/core/text/utf8.h>
#include <tenon/replay/trace/header_keys.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tenon::replay {

namespace {

using namespace header_key;

constexpr char kDefaults[] = "(defaults)";
constexpr std::uint64_t kMaxFigure = std::uint64_t{1} << 60;
constexpr std::size_t kMaxRemarks = 32;
constexpr std::size_t kMaxText = 4096;

/// Removes the line and gives its text as a terminal may show it; empty when it is not there.
std::optional<std::string> take(Trace& trace, const std::string& key) {
  const auto found = trace.header.find(key);
  if (found == trace.header.end()) return std::nullopt;
  std::string value = std::move(found->second);
  trace.header.erase(found);
  value.resize(std::min(value.size(), kMaxText));
  return printable(value);
}

std::optional<std::uint64_t> take_figure(Trace& trace, const std::string& key) {
  const auto found = trace.header.find(key);
  if (found == trace.header.end()) return std::nullopt;
  const std::string& text = found->second;
  std::uint64_t value = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || next != text.data() + text.size()) return std::nullopt;
  trace.header.erase(found);
  return std::min(value, kMaxFigure);
}

}  // namespace

std::pair<std::string, std::string> settings_line(const std::string& pytorch_conf) {
  return {kConf, pytorch_conf.empty() ? kDefaults : pytorch_conf};
}

void add_note(Trace& trace, const std::string& note) {
  if (std::ranges::find(trace.notes, note) == trace.notes.end()) trace.notes.push_back(note);
}

RecordedLines recorded_lines(const Trace& trace) {
  RecordedLines lines;
  const auto figure = [&](const char* key, std::uint64_t value) {
    if (value != 0) lines.emplace_back(key, std::to_string(value));
  };
  if (trace.recorded) {
    const RecordedAllocator& recorded = *trace.recorded;
    if (recorded.has_settings) lines.push_back(settings_line(recorded.pytorch_conf));
    lines.emplace_back(kPeak, std::to_string(recorded.peak_reserved_bytes));  // 0 as well: there was a recording
    figure(kEnd, recorded.reserved_bytes);
    figure(kStart, recorded.reserved_at_start_bytes);
    figure(kPressed, recorded.pressed);
    figure(kWhole, recorded.is_whole ? 1 : 0);
  }
  figure(kUnplaced, trace.facts.unplaced_bytes);
  figure(kRounded, trace.sizes_are_rounded);
  if (!trace.distrust.empty()) lines.emplace_back(kDistrust, trace.distrust.substr(0, kMaxText));
  const std::size_t notes = trace.notes.size(), kept = notes <= kMaxRemarks ? notes : kMaxRemarks - 1;
  for (std::size_t i = 0; i < kept; ++i)
    lines.emplace_back(kRemark + std::to_string(i + 1), trace.notes[i].substr(0, kMaxText));
  if (kept < notes)
    lines.emplace_back(kRemark + std::to_string(kMaxRemarks),
                       std::to_string(notes - kept) + " more remarks are not kept");
  return lines;
}

void take_recorded_lines(Trace& trace) {
  const auto recorded = [&]() -> RecordedAllocator& {
    if (!trace.recorded) trace.recorded.emplace().has_device_calls = false;
    return *trace.recorded;
  };
  const auto figure = [&](const char* key, std::uint64_t RecordedAllocator::*member) {
    if (const auto value = take_figure(trace, key)) recorded().*member = *value;
  };
  if (const auto conf = take(trace, kConf)) {
    recorded().has_settings = true;
    recorded().pytorch_conf = *conf == kDefaults ? std::string() : *conf;
    recorded().expandable_segments = conf->find("expandable_segments:True") != std::string::npos;
  }
  figure(kPeak, &RecordedAllocator::peak_reserved_bytes);
  figure(kEnd, &RecordedAllocator::reserved_bytes);
  figure(kStart, &RecordedAllocator::reserved_at_start_bytes);
  figure(kPressed, &RecordedAllocator::pressed);
  if (const auto value = take_figure(trace, kWhole)) recorded().is_whole = *value != 0;
  if (const auto value = take_figure(trace, kUnplaced))
    trace.facts.unplaced_bytes = std::min(*value, trace.facts.seeded_bytes);
  if (const auto value = take_figure(trace, kRounded)) trace.sizes_are_rounded = *value;
  if (auto distrust = take(trace, kDistrust)) trace.distrust = std::move(*distrust);
  for (std::size_t i = 1; i <= kMaxRemarks; ++i) {
    if (const auto remark = take(trace, kRemark + std::to_string(i))) add_note(trace, *remark);
  }
}

}  // namespace tenon::replay
