// One experiment in this process, with its recording, its folder and its report.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/core/error.h>

namespace tenon::cli {

/// Runs here. What goes wrong is written to result.json, then thrown on.
ExitCode run_one(const RunOptions& options, const Config& config);

}  // namespace tenon::cli
