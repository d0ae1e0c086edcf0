// A sweep: every cell in a process of its own, so that a crash, a kill or an out-of-memory loses one row.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/core/error.h>

namespace tenon::cli {

/// Runs the cells, options.jobs at a time as far as cores and memory allow, and compares them. With options.resume
/// those that are finished stay, and one that was interrupted goes on. Cells that failed for one and the same reason
/// hand on their code; otherwise the sweep just failed.
ExitCode run_sweep(const RunOptions& options, const Config& config);

/// What each cell would need, without running any.
ExitCode estimate_sweep(const RunOptions& options, const Config& config);

}  // namespace tenon::cli
