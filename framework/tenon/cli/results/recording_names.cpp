// Formats, their files, and the names of earlier parts.
#include <tenon/cli/results/recording_names.h>

#include <tenon/runtime/config/recordings.h>
#include <tenon/runtime/config/section_spec.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::cli {

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

/// "memory" and ".trace.gz".
std::pair<std::string, std::string> parts_of(const std::string& file) {
  const std::size_t dot = std::min(file.find('.'), file.size());
  return {file.substr(0, dot), file.substr(dot)};
}

}  // namespace

bool is_earlier_recording(const std::string& name, const std::string& file) {
  const auto [stem, suffix] = parts_of(file);
  const std::string begin = stem + kUntil;
  return name.starts_with(begin) && name.size() > begin.size() + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789", begin.size()) == name.size() - suffix.size();
}

void keep_earlier_recordings(const std::filesystem::path& folder, std::int64_t step) {
  for (const std::string& file : recorded_files()) {
    const auto [stem, suffix] = parts_of(file);
    std::error_code ignored;  // most are not there; TensorBoard reads all files of its folder
    if (!suffix.empty())
      std::filesystem::rename(folder / file, folder / fmt::format("{}{}{}{}", stem, kUntil, step, suffix), ignored);
  }
}

}  // namespace tenon::cli
