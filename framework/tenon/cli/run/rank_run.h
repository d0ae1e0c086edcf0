// A run that several ranks share: which of them this process is, and what one does that writes no results.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/comm/communicator.h>
#include <tenon/core/error.h>

#include <filesystem>
#include <memory>
#include <string>

namespace tenon::cli {

/// The other ranks of the run; null where [distributed] names no communicator. Throws ConfigError where the launcher
/// started several processes and the file says nothing of ranks: cells of a sweep aside, which are runs of their own.
std::shared_ptr<Communicator> meet_ranks(const RunOptions& options, const Config& config);

/// By every rank, of `tenon run --dry-run` under a launcher: throws as compare_settings() does where they differ, or
/// others run. Nothing where the ranks cannot meet: plans are made without them.
void compare_dry_runs(const RunOptions& options, const Config& config);

/// Whether the launcher says that this process is another rank than 0: then it says nothing of what all come to.
bool is_silent_rank(const RunOptions& options);

/// By rank 0, when its experiment is checked: the others go on in run_rank(), where they wait for it. Throws as
/// compare_settings() does, which some communicators can do only in share_folder().
void begin_ranks(Communicator& ranks, const Config& config);

/// By rank 0, when its devices are set up: the other ranks learn where the results go. Throws the same.
void share_folder(Communicator& ranks, const Config& config, const std::filesystem::path& folder);

/// By rank 0 in place of both: there is nothing to run, and the others end well. Throws the same.
void release_ranks(Communicator& ranks, const Config& config);

/// Trains as one of the ranks and leaves the results to rank 0, which this is not. Where that one has died, the first
/// of the others that can leaves a result in its folder and says what happened; the others are silent. A rank that
/// fails by itself tells all others and says why.
ExitCode run_rank(const RunOptions& options, const Config& config, const std::shared_ptr<Communicator>& ranks);

/// By every rank of a run that was interrupted: all end as with the signal that one of them got.
void share_interrupt(Communicator& ranks);

/// Of ranks that have failed: says `command`, where there is a saved state to go on from.
void say_how_to_go_on(const std::filesystem::path& state, const std::string& command);

}  // namespace tenon::cli
