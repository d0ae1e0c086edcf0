// run.json: whose results a folder holds, so that this run or sweep can go on there, and no other gets mixed in.
#pragma once

#include <tenon/cli/results/run_basis.h>
#include <tenon/cli/results/run_options.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/result_files.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct RunManifest {
  bool is_sweep = false;
  bool is_finished = false;
  std::string folder;                 ///< that it was started in
  RunOptions command;                 ///< file, overrides, sweep, no_sweep, record, deadline
  std::vector<std::string> cells;     ///< of a sweep: the settings of each
  std::string settings;               ///< the resolved TOML, of a sweep that of what it does not vary
  std::vector<std::string> defaults;  ///< keys of `settings` that nobody set; not written
  std::optional<RunBasis> basis;      ///< empty in a folder that an older Tenon wrote
  std::vector<std::string> files;     ///< that layers write into the folder
  std::vector<RunFault> faults;       ///< found so far, kept here as a killed run leaves no result
  unsigned cells_at_a_time = 1;       ///< of a cell: how many its sweep ran beside each other at most, itself included
};

RunManifest manifest_of(const RunOptions& options, const Config& config);

/// The file that a layer writes into the run's folder; empty where it writes none, or the user gave it another place.
std::string layer_file(const LayerConfig& layer);
/// Puts such files into the run's folder, unless the user gave them a place of their own.
void place_layer_files(ExperimentConfig& experiment, const std::filesystem::path& folder);
/// The file that it writes in that other place.
std::string layer_file_elsewhere(const LayerConfig& layer);

/// run.json and config.resolved.toml. Throws Error.
void write_manifest(const std::filesystem::path& folder, const RunManifest& manifest);

/// Empty where there is none, or one that says nothing.
std::optional<RunManifest> read_manifest(const std::filesystem::path& folder);

/// What differs, a line each: "train.lr was 0.001, is 0.01". Empty: the same experiment. Options that a rebuilt plugin
/// has got, lost or given another default do not count: what stood on that plugin runs again anyway.
std::vector<std::string> changes_between(const RunManifest& then, const RunManifest& now);

}  // namespace tenon::cli
