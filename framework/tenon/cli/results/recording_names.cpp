// Formats, their files, and the names of earlier parts.
#include <tenon/cli/results/recording_names.h>

#include <tenon/runtime/config/section_spec.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tenon::cli {

const std::map<std::string, std::string>& recording_names() {
  static const auto* names = new std::map<std::string, std::string>{
      {"trace", "memory.tenon"},        {"text", "memory.trace.gz"}, {"snapshot", "memory.pickle"},
      {"chrome", "memory.chrome.json"}, {"folded", "memory.folded"}, {"tensorboard", "tensorboard"}};
  return *names;
}

std::set<std::string> recorded_formats(const ExperimentConfig& experiment) {
  std::vector<std::string> known;
  for (const auto& [word, file] : recording_names()) known.push_back(word);
  std::set<std::string> formats;
  for (const std::string& word : split_list(experiment.section("report").text("record"))) {
    if (word == "all") {
      formats.insert(known.begin(), known.end());
    } else if (recording_names().contains(word)) {
      formats.insert(word);
    } else {
      const std::string near = nearest_name(word, known);
      throw experiment.error("report.record",
                             fmt::format("unknown format \"{}\"{}; known: {}, all", word,
                                         near.empty() ? "" : "; did you mean " + near + "?", fmt::join(known, ", ")));
    }
  }
  return formats;
}

std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& [word, file] : recording_names()) names.push_back(file);
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
