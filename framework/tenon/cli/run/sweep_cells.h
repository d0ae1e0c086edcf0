// The cells of a sweep as runs of their own: their names, and the exit code of the sweep, from theirs.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/runtime/config/config.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::cli {

/// The settings of a cell on the command line: those of the user that the cell does not set itself, then its own.
std::vector<std::string> overrides_of(const RunOptions& options, const SweepPoint& cell);

/// What the command line of each of these cells has besides: how it is watched, and in which settings they differ.
std::vector<std::string> words_of_each(const RunOptions& options, const std::vector<SweepPoint>& cells);

/// The options of a cell that is run by itself.
RunOptions alone(const RunOptions& options, const SweepPoint& cell);

/// The configuration of that run. Throws ConfigError.
Config config_of(const RunOptions& options, const SweepPoint& cell);

/// "002-caching": of cell `index` from 0.
std::string cell_folder_name(std::size_t index, const std::vector<std::string>& values);

/// "[2/3] ".
std::string cell_label(std::size_t index, std::size_t count);

/// Of a sweep: that of its cells where those that failed agree.
int code_of_both(int one, int other);

}  // namespace tenon::cli
