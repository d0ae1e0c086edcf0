// The folder of a run or a sweep: what may begin there, and where one goes on.
#pragma once

#include <tenon/cli/process/output_folder.h>
#include <tenon/cli/run/run_manifest.h>
#include <tenon/core/error.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::cli {

/// What is in a folder of results.
struct FolderContent {
  bool is_run = false;
  bool is_sweep = false;
  bool is_finished = false;
  bool has_state = false;          ///< a run that can go on
  std::size_t finished_cells = 0;  ///< of a sweep that is not finished: what would be lost
};
FolderContent content_of(const std::filesystem::path& folder);

/// Whether a result of that status stays when its run is resumed: done, or what would happen again, out of memory and a
/// broken promise of the allocator.
bool is_finished_status(std::string_view status);
/// How a run that is finished with that status ended.
ExitCode exit_code_of_finished(std::string_view status);
/// Whether there is such a result in the folder.
bool has_finished_result(const std::filesystem::path& folder);

/// Does what the process that left a finished result there did not come to: the report, what is kept no longer.
/// `has_report`: the run was to write one. Throws ConfigError while that process is still there.
void complete_finished(const std::filesystem::path& folder, bool has_report);

/// The result of a run that is finished, in a folder that somebody has removed.
void write_finished(const std::filesystem::path& folder, RunManifest manifest, std::string_view result);

/// Waits for a cell that outlived the sweep that started it: it ends after its step. Throws ConfigError when it does
/// not.
void wait_for_cell(const std::filesystem::path& folder);

/// The locked folder for a run or a sweep that begins, or goes on with options.resume; run.json and
/// config.resolved.toml are written. Throws ConfigError where something else is in it, or work that would be lost, or
/// an experiment that has changed.
std::unique_ptr<OutputFolder> open_run_folder(const RunOptions& options, const Config& config);

/// Throws ConfigError that names what has changed since the run or sweep in the folder began.
void refuse_changes(const std::filesystem::path& folder, const RunManifest& now);

/// What was asked for with --resume alone, from run.json. Throws ConfigError where there is nothing to resume.
RunOptions resumed_options(const RunOptions& options);

/// "tenon run exp.toml train.lr=0.1": the same in a new folder.
std::string begin_command(const RunOptions& options);
/// "tenon run --resume DIR".
std::string resume_command(const std::filesystem::path& folder);

}  // namespace tenon::cli
