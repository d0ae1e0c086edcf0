// Rules for folders of results.
#include <tenon/cli/results/run_folder.h>

#include <tenon/cli/results/former_results.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/file_text.h>
#include <tenon/core/text/counted.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/report/run/run_report.h>
#include <tenon/report/text/command_line.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::cli {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

namespace {

constexpr double kCellPatienceSeconds = 30;  // a cell whose sweep was killed ends after its step

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
    const std::string what = content.is_sweep ? "a sweep with " + counted(content.finished_cells, "finished cell")
                                              : std::string("a run with the state that it can go on from");
    throw ConfigError(
        fmt::format("{} has {}, which would be lost; choose another folder with --out, or go on with it:\n  {}", name,
                    what, relaunched(rank_environment(), resume_command(folder))));
  }
}

[[noreturn]] void refuse_without_manifest(const fs::path& folder) {
  if (!is_there(folder / kManifestFile))
    throw ConfigError(fmt::format("{} has no {}: there is nothing to resume", folder.string(), kManifestFile));
  throw ConfigError(
      fmt::format("{} is damaged, as it may be where a disk was full: what to go on with is not known. Run "
                  "the experiment again; --out names another folder",
                  (folder / kManifestFile).string()));
}

ResultFiles files_in(const fs::path& folder) {
  const std::optional<RunManifest> manifest = read_manifest(folder);
  return {folder, manifest ? manifest->files : std::vector<std::string>()};
}

/// Of results that stand in the way of a new run; returns where they are then. What failed before it had any leaves
/// nothing to keep.
fs::path make_room(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& cell : fs::directory_iterator(folder / kCellsFolder, ignored)) wait_for_cell(cell.path());
  const ResultFiles files = files_in(folder);
  if (files.has_results()) return files.keep();
  files.remove();
  return {};
}

}  // namespace

/// "res-2", where nothing is yet.
static fs::path free_folder_beside(fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "res/"
  for (int number = 2;; ++number) {
    fs::path beside = fmt::format("{}-{}", folder.string(), number);
    if (!is_there(beside)) return beside;
  }
}

void refuse_changes(const fs::path& folder, const RunManifest& now) {
  const std::optional<RunManifest> then = read_manifest(folder);
  if (!then) refuse_without_manifest(folder);
  if (then->is_sweep != now.is_sweep)
    throw ConfigError(fmt::format("{} belongs to {}, and this is {}; choose another folder with --out", folder.string(),
                                  then->is_sweep ? "a sweep" : "one run", now.is_sweep ? "a sweep" : "one run"));
  const std::vector<std::string> changes = changes_between(*then, now);
  if (changes.empty()) return;
  const std::string elsewhere = then->folder == now.folder ? "" : fmt::format(" (it was started in {})", then->folder);
  // What the command line changed is undone by leaving it out; what the file did, by an editor.
  const bool is_asked = then->command.overrides != now.command.overrides || then->command.record != now.command.record;
  throw ConfigError(fmt::format(
      "{} belongs to another experiment{}: {}.\n{}:\n  {}\nor begin anew in another folder:\n  {}", folder.string(),
      elsewhere, fmt::join(changes, "; "), is_asked ? "Go on with it as it began" : "Undo that and go on with it",
      relaunched(rank_environment(), resume_command(folder)), begin_command(now.command, free_folder_beside(folder))));
}

ExitCode exit_code_of_finished(RunStatus status) {
  if (status == RunStatus::kOutOfMemory) return ExitCode::kOutOfMemory;
  return status == RunStatus::kDisqualified ? ExitCode::kFailed : ExitCode::kDone;
}

bool has_finished_result(const fs::path& folder) {
  try {
    return is_finished(read_summary(folder / kResultFile).status);
  } catch (const std::exception&) {
    return false;
  }
}

void complete_finished(const fs::path& folder, bool has_report) {
  const OutputFolder locked(folder, "", kCellPatienceSeconds);
  std::error_code ignored;
  fs::remove(folder / kStateFile, ignored);
  if (has_report && !is_there(folder / kReportFile))
    write_atomically(folder / kReportFile, run_html(text_of_file(folder / kResultFile)));
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

namespace {

/// Of a folder that is gone on with: what has changed; the manifest stays that of its beginning. A sweep looks at each
/// of its cells itself.
void go_on(OpenedFolder& opened) {
  const fs::path& path = opened.folder->path();
  refuse_changes(path, opened.manifest);
  const RunManifest then = read_manifest(path).value();
  opened.goes_on = true;
  const bool has_other_deadline = opened.manifest.command.call_seconds != then.command.call_seconds;
  if (opened.manifest.is_sweep && has_other_deadline) write_manifest(path, opened.manifest);
  if (opened.manifest.is_sweep) return;
  opened.change = change_between(then.basis, opened.manifest.basis.value());
  opened.goes_on = opened.change.plugins.empty();
  if (!opened.goes_on) return;
  opened.manifest.faults = then.faults;
  if (then.basis) opened.earlier_version = then.basis->version;
  opened.manifest.basis = then.basis;
  const bool has_more_beside_it = opened.manifest.cells_at_a_time > then.cells_at_a_time;
  if (!has_more_beside_it) opened.manifest.cells_at_a_time = then.cells_at_a_time;
  if (has_more_beside_it || has_other_deadline) write_manifest(path, opened.manifest);
}

/// What a sweep that runs keeps its cells in is its own, the names that it has not come to yet included.
void refuse_cells_of_a_running_sweep(const fs::path& wanted) {
  if (wanted.empty()) return;
  std::error_code ignored;
  for (fs::path path = fs::weakly_canonical(fs::absolute(wanted), ignored); path.has_relative_path();
       path = path.parent_path()) {
    if (path.filename() != kCellsFolder) continue;
    const fs::path sweep = path.parent_path();
    if (const std::string writer = writer_of(sweep); !writer.empty())
      throw ConfigError(fmt::format(
          "{} runs the sweep in {} at this moment, and {} is among its cells; choose another folder with --out, or "
          "wait for it",
          writer, sweep.string(), wanted.string()));
  }
}

/// What cannot even begin leaves the folder as it was.
void begin_folder(const OpenedFolder& opened) {
  const fs::path& path = opened.folder->path();
  try {
    write_manifest(path, opened.manifest);
  } catch (const Error&) {
    std::error_code ignored;
    for (const char* name : {kSettingsFile, kManifestFile}) fs::remove(path / name, ignored);
    if (!opened.kept.empty()) ResultFiles(path, opened.manifest.files).put_back(opened.kept);
    opened.folder->remove_new();
    throw;
  }
}

}  // namespace

OpenedFolder open_run_folder(const RunOptions& options, const Config& config) {
  const bool is_resumed = !options.resume.empty();
  if (is_resumed && !is_there(options.resume))
    throw ConfigError(fmt::format("there is no folder {} to resume", options.resume));
  if (!options.is_cell()) refuse_cells_of_a_running_sweep(is_resumed ? options.resume : options.out);
  OpenedFolder opened;
  opened.manifest = manifest_of(options, config);
  opened.folder = std::make_unique<OutputFolder>(is_resumed ? options.resume : options.out, config.experiment().name,
                                                 options.is_cell() ? kCellPatienceSeconds : 0);
  const fs::path& path = opened.folder->path();
  if (is_resumed) {
    go_on(opened);
    if (opened.goes_on) return opened;
    opened.kept = make_room(path);
  } else {
    const FolderContent content = content_of(path);
    refuse_to_mix(path, content, opened.manifest.is_sweep);
    if (content.is_run || content.is_sweep) opened.kept = make_room(path);
  }
  begin_folder(opened);
  return opened;
}

fs::path keep_former(const fs::path& folder) {
  const OutputFolder locked(folder, "", kCellPatienceSeconds);
  return make_room(folder);
}

RunOptions resumed_options(const RunOptions& options) {
  const std::optional<RunManifest> manifest = read_manifest(options.resume);
  if (!options.file.empty()) {
    RunOptions named = options;
    if (manifest && !options.has_deadline) named.call_seconds = manifest->command.call_seconds;
    return named;
  }
  if (!manifest) refuse_without_manifest(options.resume);
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
  resumed.has_jobs = options.has_jobs;
  resumed.launcher = options.launcher;
  resumed.launcher_args = options.launcher_args;
  if (options.has_deadline) resumed.call_seconds = options.call_seconds;
  resumed.watch = options.watch;
  resumed.metrics = options.metrics;
  resumed.interval = options.interval;
  resumed.has_interval = options.has_interval;
  resumed.quiet = options.quiet;
  resumed.format = options.format;
  const fs::path file = fs::path(manifest->folder) / manifest->command.file;
  if (!is_there(file)) {
    const std::string settings = (fs::path(options.resume) / kSettingsFile).string();
    throw ConfigError(fmt::format("the experiment {} is gone; {}", file.string(),
                                  manifest->is_sweep
                                      ? "what its sweep did not vary is in " + settings
                                      : fmt::format("go on with its settings:\n  tenon run {} --resume {}",
                                                    shell_word(settings), shell_word(options.resume))));
  }
  if (fs::current_path().string() == manifest->folder) return resumed;
  resumed.resume = fs::absolute(options.resume).lexically_normal().string();
  resumed.folder = manifest->folder;
  std::error_code gone;  // where all words are absolute it may be
  fs::current_path(manifest->folder, gone);
  return resumed;
}

std::string begin_command(const RunOptions& options, const fs::path& out) {
  std::string command = options.folder.empty() ? "" : "cd " + shell_word(options.folder) + " && ";
  command += relaunched(rank_environment(), "tenon run " + shell_word(options.file));
  for (const std::string& word : options.overrides) command += " " + shell_word(word);
  if (options.sweep) command += " --sweep";
  if (options.no_sweep) command += " --no-sweep";
  if (!options.record.empty()) command += " --record " + shell_word(options.record);
  if (!out.empty()) command += " --out " + shell_word(out.string());
  if (options.call_seconds != kCallSeconds) command += fmt::format(" --deadline {}", options.call_seconds);
  return command;
}

}  // namespace tenon::cli
