// Recordings that a run was asked for and that are not in its folder, and the commands that make them from one that is.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// Names of files.
std::vector<std::string> missing_recordings(const ExperimentConfig& experiment, const std::filesystem::path& folder);

/// A line "\n  tenon trace convert A B" for each of `missing` that can be made from a recording of the folder.
std::string commands_that_make(const std::vector<std::string>& missing, const std::filesystem::path& folder);

/// What a finished run lacks, with the commands that make it, or run it again with `again`, which may be empty; empty:
/// it lacks nothing.
std::string missing_recordings_message(const ExperimentConfig& experiment, const std::filesystem::path& folder,
                                       const std::string& again);

}  // namespace tenon::cli
