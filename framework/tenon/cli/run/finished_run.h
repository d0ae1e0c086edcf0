// A run that is over: its table, and what is said when somebody resumes it.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/core/error.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/experiment.h>

#include <optional>

namespace tenon::cli {

/// One row, as [report] of the experiment wants it.
Table table_of(const RunSummary& run, const ExperimentConfig& experiment, TableFormat format);

/// Where `options.resume` holds a finished run of the same plugins: its table, and what of its recordings is missing;
/// empty where there is something to run. Throws ConfigError where the experiment is another one.
std::optional<ExitCode> show_finished(const RunOptions& options, const Config& config);

}  // namespace tenon::cli
