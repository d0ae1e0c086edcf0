// The folder of a run or a sweep: what may begin there, and where one goes on.
#pragma once

#include <tenon/cli/process/output_folder.h>
#include <tenon/cli/results/run_manifest.h>
#include <tenon/core/error.h>
#include <tenon/runtime/run_status.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::cli {

/// Whether a file or folder of that name is there; what cannot be asked is not.
bool is_there(const std::filesystem::path& path);

/// What is in a folder of results.
struct FolderContent {
  bool is_run = false;
  bool is_sweep = false;
  bool is_finished = false;
  bool has_state = false;          ///< a run that can go on
  std::size_t finished_cells = 0;  ///< of a sweep that is not finished: what would be lost
};
FolderContent content_of(const std::filesystem::path& folder);

/// How a run that is finished with that status ended.
ExitCode exit_code_of_finished(RunStatus status);
/// Whether the folder has a result that stays when its run is resumed: see is_finished().
bool has_finished_result(const std::filesystem::path& folder);

/// Does what the process that left a finished result there did not come to: the report, what is kept no longer.
/// `has_report`: the run was to write one. Throws ConfigError while that process is still there.
void complete_finished(const std::filesystem::path& folder, bool has_report);

/// The result of a run that is finished, in a folder that somebody has removed.
void write_finished(const std::filesystem::path& folder, RunManifest manifest, std::string_view result);

/// Waits for a cell that outlived the sweep that started it: it ends after its step. Throws ConfigError when it does
/// not.
void wait_for_cell(const std::filesystem::path& folder);

/// A folder that a run or a sweep writes to from now on.
struct OpenedFolder {
  std::unique_ptr<OutputFolder> folder;
  RunManifest manifest;         ///< as it stands there
  BasisChange change;           ///< since what is in it began
  std::string earlier_version;  ///< of Tenon then
  std::filesystem::path kept;   ///< where the results are that were in it, if it begins anew; empty: there were none
  bool goes_on = false;         ///< with what is there
};

/// The locked folder for a run or a sweep that begins, or goes on with options.resume; run.json and
/// config.resolved.toml are written. Results that stand there are kept in a folder below it when a run begins, as does
/// one that is resumed under another plugin. Throws ConfigError where something else is in it, or work that can go on,
/// or an experiment that has changed.
OpenedFolder open_run_folder(const RunOptions& options, const Config& config);

/// Throws ConfigError that names what has changed since the run or sweep in the folder began.
void refuse_changes(const std::filesystem::path& folder, const RunManifest& now);

/// Moves what is in the folder of a run to a folder below it, which is returned; empty: there was nothing. Throws
/// ConfigError while the run is still there.
std::filesystem::path keep_former(const std::filesystem::path& folder);

/// What was asked for with --resume, from run.json what the command line does not say. The folder in which the run or
/// sweep was started is the current one from here on, so that every relative path means what it meant. Throws
/// ConfigError where there is nothing to resume.
RunOptions resumed_options(const RunOptions& options);

/// "tenon run exp.toml train.lr=0.1": the same in a new folder.
std::string begin_command(const RunOptions& options, const std::filesystem::path& out = {});
}  // namespace tenon::cli
