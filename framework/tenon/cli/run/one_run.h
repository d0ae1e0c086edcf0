// One experiment in this process, with its recording, its folder and its report.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/comm/communicator.h>
#include <tenon/core/error.h>

#include <memory>

namespace tenon::cli {

/// Runs here, with the other `ranks` unless they are null. What goes wrong is written to result.json, then thrown on.
ExitCode run_one(const RunOptions& options, const Config& config, std::shared_ptr<Communicator> ranks = nullptr);

}  // namespace tenon::cli
