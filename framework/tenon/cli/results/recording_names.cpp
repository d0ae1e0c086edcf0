// Formats, their files, and the names of earlier parts.
#include <tenon/cli/results/recording_names.h>

#include <tenon/runtime/config/recordings.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/train/resume/saved_run.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::cli {

namespace fs = std::filesystem;

std::set<std::string> recorded_formats(const ExperimentConfig& experiment) {
  std::vector<std::string> known;
  for (const Recording& recording : kRecordings) known.emplace_back(recording.word);
  std::set<std::string> formats;
  for (const std::string& word : split_list(experiment.section("report").text("record"))) {
    if (word == kAllRecordings) {
      formats.insert(known.begin(), known.end());
    } else if (std::ranges::find(known, word) != known.end()) {
      formats.insert(word);
    } else {
      const std::string near = nearest_name(word, known);
      throw experiment.error("report.record", fmt::format("unknown format \"{}\"{}; known: {}, {}", word,
                                                          near.empty() ? "" : "; did you mean " + near + "?",
                                                          recording_words(), kAllRecordings));
    }
  }
  return formats;
}

std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const Recording& recording : kRecordings) names.emplace_back(recording.file);
  return names;
}

namespace {

constexpr char kUntil[] = ".until-step-";

/// "sub/memory" and ".trace.gz".
std::pair<std::string, std::string> parts_of(const std::string& file) {
  const std::size_t name = file.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = std::min(file.find('.', name + 1), file.size());
  return {file.substr(0, dot), file.substr(dot)};
}

/// "40", "40-2".
bool is_step(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789-") == std::string::npos;
}

}  // namespace

std::vector<std::string> profile_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
    if (name.starts_with("profile.") && (ends(".txt") || ends(".chrome.json") || ends(".folded")))
      files.push_back(name);
  }
  return files;
}

std::vector<std::string> earlier_recordings(const fs::path& folder, const std::string& file) {
  const auto [stem, suffix] = parts_of(file);
  const std::string begin = stem + kUntil;
  const fs::path place = fs::path(file).parent_path();
  std::vector<std::string> earlier;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / place, ignored)) {
    const std::string name = (place / entry.path().filename()).string();
    const bool fits = name.size() > begin.size() + suffix.size() && name.starts_with(begin) && name.ends_with(suffix);
    if (fits && is_step(name.substr(begin.size(), name.size() - begin.size() - suffix.size()))) earlier.push_back(name);
  }
  return earlier;
}

namespace {

/// Nothing where it cannot be read: going on from it will say why.
std::optional<std::int64_t> steps_in(const fs::path& state) {
  try {
    return train::saved_steps(state);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

fs::path keep_recording(const fs::path& folder, const std::string& file, std::int64_t step) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / file, ignored)) return {};  // TensorBoard reads all files of its folder
  const auto [stem, suffix] = parts_of(file);
  fs::path kept = folder / fmt::format("{}{}{}{}", stem, kUntil, step, suffix);
  for (int part = 2; fs::exists(kept, ignored); ++part)
    kept = folder / fmt::format("{}{}{}-{}{}", stem, kUntil, step, part, suffix);
  fs::rename(folder / file, kept, ignored);
  return kept;
}

std::string keep_recordings(const fs::path& folder, const std::vector<std::string>& more, const RunState& state,
                            std::optional<std::int64_t> steps) {
  const std::optional<std::int64_t> saved = state.go_on ? steps_in(state.file) : std::nullopt;
  const std::int64_t step = saved.value_or(steps.value_or(0));
  std::vector<std::string> files = recorded_files();
  files.insert(files.end(), more.begin(), more.end());
  std::string last;
  for (const std::string& file : files)
    if (const fs::path kept = keep_recording(folder, file, step); !kept.empty()) last = kept.string();
  if (last.empty() || !saved || saved == steps) return {};
  return fmt::format(
      "what was recorded before is kept, as {}; what it has after step {} is run again, and recorded again", last,
      step);
}

}  // namespace tenon::cli
