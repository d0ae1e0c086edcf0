// Rules for folders of results.
#include <tenon/cli/run/run_folder.h>

#include <tenon/cli/run/run_recording.h>
#include <tenon/core/atomic_file.h>
#include <tenon/core/file_text.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_report.h>
#include <tenon/report/text/command_line.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

constexpr double kCellPatienceSeconds = 30;  // a cell whose sweep was killed ends after its step

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void refuse_to_mix(const fs::path& folder, const FolderContent& content, bool is_sweep) {
  const std::string name = folder.string();
  if (is_sweep ? content.is_run : content.is_sweep) {
    throw ConfigError(
        fmt::format("{} has the results of {}; {} there would be mixed with them: choose another folder "
                    "with --out",
                    name, is_sweep ? "a run" : "a sweep", is_sweep ? "a sweep" : "a run"));
  }
  if (content.is_finished) return;
  if (content.has_state || content.finished_cells > 0) {
    const std::string what = content.is_sweep ? fmt::format("a sweep with {} finished cells", content.finished_cells)
                                              : std::string("a run with the state that it can go on from");
    throw ConfigError(
        fmt::format("{} has {}, which would be lost; choose another folder with --out, or go on with it:\n  {}", name,
                    what, resume_command(folder)));
  }
}

/// What an older run or sweep left, so that nothing of it stands beside the new one's.
void remove_old_results(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {kManifestFile, kSettingsFile, kResultFile, kStateFile, "report.html", kCellsFolder})
    fs::remove_all(folder / name, ignored);
  for (const std::string& name : recorded_files()) {
    fs::remove_all(folder / name, ignored);
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (is_earlier_recording(entry.path().filename().string(), name)) fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

void refuse_changes(const fs::path& folder, const RunManifest& now) {
  const std::optional<RunManifest> then = read_manifest(folder);
  if (!then) throw ConfigError(fmt::format("{} has no {}: there is nothing to resume", folder.string(), kManifestFile));
  if (then->is_sweep != now.is_sweep)
    throw ConfigError(fmt::format("{} belongs to {}, and this is {}", folder.string(),
                                  then->is_sweep ? "a sweep" : "one run", now.is_sweep ? "a sweep" : "one run"));
  const std::vector<std::string> changes = changes_between(*then, now);
  if (changes.empty()) return;
  const std::string elsewhere = then->folder == now.folder ? "" : fmt::format(" (it was started in {})", then->folder);
  // What the command line changed is undone by leaving it out; what the file did, by an editor.
  const bool is_asked = then->command.overrides != now.command.overrides || then->command.record != now.command.record;
  throw ConfigError(fmt::format(
      "{} belongs to another experiment{}: {}.\n{}:\n  {}\nor begin anew in another folder:\n  {}", folder.string(),
      elsewhere, fmt::join(changes, "; "), is_asked ? "Go on with it as it began" : "Undo that and go on with it",
      resume_command(folder), begin_command(now.command)));
}

bool is_finished_status(std::string_view status) {
  return status == "done" || status == "disqualified" || status == "out_of_memory";
}

ExitCode exit_code_of_finished(std::string_view status) {
  if (status == "out_of_memory") return ExitCode::kOutOfMemory;
  return status == "disqualified" ? ExitCode::kFailed : ExitCode::kDone;
}

bool has_finished_result(const fs::path& folder) {
  try {
    return is_finished_status(read_summary(folder / kResultFile).status);
  } catch (const std::exception&) {
    return false;
  }
}

void complete_finished(const fs::path& folder, bool has_report) {
  const OutputFolder locked(folder, "", kCellPatienceSeconds);
  std::error_code ignored;
  fs::remove(folder / kStateFile, ignored);
  if (has_report && !is_there(folder / "report.html"))
    write_atomically(folder / "report.html", run_html(text_of_file(folder / kResultFile)));
  std::optional<RunManifest> manifest = read_manifest(folder);
  if (!manifest || manifest->is_finished) return;
  manifest->is_finished = true;
  write_manifest(folder, *manifest);
}

void write_finished(const fs::path& folder, RunManifest manifest, std::string_view result) {
  const OutputFolder locked(folder, "", kCellPatienceSeconds);
  manifest.is_finished = true;
  write_manifest(folder, manifest);
  write_atomically(folder / kResultFile, result);
}

void wait_for_cell(const fs::path& folder) {
  if (!is_there(folder)) return;
  const OutputFolder locked(folder, "", kCellPatienceSeconds);
}

FolderContent content_of(const fs::path& folder) {
  FolderContent content;
  const std::optional<RunManifest> manifest = read_manifest(folder);
  const fs::path cells = folder / kCellsFolder;
  content.is_sweep = manifest ? manifest->is_sweep : is_there(cells);
  content.is_run = !content.is_sweep && (manifest || is_there(folder / kResultFile));
  content.is_finished = manifest ? manifest->is_finished : is_there(folder / kResultFile);
  content.has_state = is_there(folder / kStateFile);
  std::error_code ignored;
  for (const auto& cell : fs::directory_iterator(cells, ignored)) {
    if (has_finished_result(cell.path())) ++content.finished_cells;
  }
  return content;
}

std::unique_ptr<OutputFolder> open_run_folder(const RunOptions& options, const Config& config) {
  const bool goes_on = !options.resume.empty();
  const RunManifest manifest = manifest_of(options, config);
  if (goes_on && !is_there(options.resume))
    throw ConfigError(fmt::format("there is no folder {} to resume", options.resume));
  auto folder = std::make_unique<OutputFolder>(goes_on ? options.resume : options.out, config.experiment().name,
                                               options.is_cell() ? kCellPatienceSeconds : 0);
  if (goes_on) {
    refuse_changes(folder->path(), manifest);
    return folder;
  }
  const FolderContent content = content_of(folder->path());
  refuse_to_mix(folder->path(), content, manifest.is_sweep);
  if (content.is_run || content.is_sweep) remove_old_results(folder->path());
  write_manifest(folder->path(), manifest);
  return folder;
}

RunOptions resumed_options(const RunOptions& options) {
  if (!options.file.empty()) return options;
  const std::optional<RunManifest> manifest = read_manifest(options.resume);
  if (!manifest)
    throw ConfigError(fmt::format("{} has no {}: there is nothing to resume", options.resume, kManifestFile));
  RunOptions resumed = manifest->command;
  for (const std::string& word : options.overrides) {
    const std::string key = word.substr(0, word.find('=') + 1);
    std::erase_if(resumed.overrides,
                  [&](const std::string& before) { return before != word && before.starts_with(key); });
    if (std::ranges::find(resumed.overrides, word) == resumed.overrides.end()) resumed.overrides.push_back(word);
  }
  if (!options.record.empty()) resumed.record = options.record;
  resumed.resume = options.resume;
  resumed.jobs = options.jobs;
  resumed.call_seconds = options.call_seconds;
  resumed.quiet = options.quiet;
  resumed.format = options.format;
  const fs::path file = fs::path(manifest->folder) / manifest->command.file;
  if (fs::current_path().string() != manifest->folder) resumed.file = file.string();
  if (!is_there(file)) {
    const std::string settings = (fs::path(options.resume) / kSettingsFile).string();
    throw ConfigError(fmt::format("the experiment {} is gone; {}", file.string(),
                                  manifest->is_sweep
                                      ? "what its sweep did not vary is in " + settings
                                      : fmt::format("go on with its settings:\n  tenon run {} --resume {}",
                                                    shell_word(settings), shell_word(options.resume))));
  }
  return resumed;
}

std::string begin_command(const RunOptions& options) {
  std::string command = "tenon run " + shell_word(options.file);
  for (const std::string& word : options.overrides) command += " " + shell_word(word);
  if (options.sweep) command += " --sweep";
  if (options.no_sweep) command += " --no-sweep";
  if (!options.record.empty()) command += " --record " + shell_word(options.record);
  return command;
}

std::string resume_command(const fs::path& folder) { return "tenon run --resume " + shell_word(folder.string()); }

}  // namespace tenon::cli
