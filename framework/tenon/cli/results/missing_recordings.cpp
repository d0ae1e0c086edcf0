// The recordings asked for against the files of the folder. No memory history gives TensorBoard's figures of training;
// only a snapshot has call stacks.
#include <tenon/cli/results/missing_recordings.h>

#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/report/text/command_line.h>
#include <tenon/runtime/config/recordings.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// The first that is whole of those that hold what `wanted` is made of; empty: none is.
std::string source_of(const std::string& wanted, const std::vector<std::string>& missing, const fs::path& folder) {
  const Recording* const made = find_recording_of_file(wanted);
  if (made == nullptr || made->kind == RecordingKind::kSeries) return {};
  const bool needs_stacks = made->has_stacks && !made->is_read;
  for (const Recording& source : kRecordings) {
    std::string name(source.file);
    if (source.is_read && source.has_stacks == needs_stacks && std::ranges::find(missing, name) == missing.end() &&
        is_there(folder / name))
      return name;
  }
  return {};
}

}  // namespace

std::vector<std::string> missing_recordings(const ExperimentConfig& experiment, const fs::path& folder) {
  std::vector<std::string> missing;
  const std::set<std::string> wanted = recorded_formats(experiment);
  for (const Recording& recording : kRecordings) {
    if (wanted.contains(std::string(recording.word)) && !is_there(folder / recording.file))
      missing.emplace_back(recording.file);
  }
  return missing;
}

std::string commands_that_make(const std::vector<std::string>& missing, const fs::path& folder) {
  std::string commands;
  for (const std::string& name : missing) {
    const std::string source = source_of(name, missing, folder);
    if (source.empty()) continue;
    commands += fmt::format("\n  tenon trace convert {} {}", shell_word((folder / source).string()),
                            shell_word((folder / name).string()));
  }
  return commands;
}

std::string missing_recordings_message(const ExperimentConfig& experiment, const fs::path& folder,
                                       const std::string& again) {
  const std::vector<std::string> missing = missing_recordings(experiment, folder);
  if (missing.empty()) return {};
  std::string text = fmt::format("not in {} though asked for: {}", folder.string(), fmt::join(missing, ", "));
  const std::string commands = commands_that_make(missing, folder);
  if (!commands.empty()) text += "; make what can be made of the recordings with" + commands;
  std::vector<std::string> lost;
  for (const std::string& name : missing)
    if (source_of(name, missing, folder).empty()) lost.push_back(name);
  if (again.empty() || lost.empty()) return text;
  return text + fmt::format("{}only another run records {}:\n  {}", commands.empty() ? "; " : "\n",
                            lost.size() == missing.size() ? "them" : fmt::format("{}", fmt::join(lost, ", ")), again);
}

}  // namespace tenon::cli
