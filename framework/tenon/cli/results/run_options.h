// What a command line of `tenon run` asks for.
#pragma once

#include <tenon/report/table.h>
#include <tenon/runtime/config/config.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// That one call of an allocator may take, unless --deadline says otherwise.
inline constexpr double kCallSeconds = 60;

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool sweep = false;
  bool no_sweep = false;
  std::string out;
  std::string record;
  bool dry_run = false;
  int ranks = 0;            ///< of a dry run: so many are to be estimated; 0: those that were launched
  int layouts = 0;          ///< of a dry run: ways to spread the model over so many devices; 0: none
  std::string device_size;  ///< that ranks and layouts are held against; empty: nothing
  bool quiet = false;
  bool watch = false;                  ///< the figures of the run, again and again
  std::string metrics;                 ///< where its page for Prometheus is; empty: nowhere
  double interval = 1;                 ///< seconds between two looks of both
  bool has_interval = false;           ///< it was asked for
  std::string resume;                  ///< the folder to go on in
  unsigned jobs = 1;                   ///< cells at a time
  bool has_jobs = false;               ///< it was asked for
  std::string launcher;                ///< the engine that runs the cells elsewhere; empty: processes of ours
  std::string launcher_args;           ///< words for it
  std::string work_in;                 ///< of a worker, set by the launcher: the folder of its list of cells
  int work_on = -1;                    ///< and which one of them; -1: one after the other
  double call_seconds = kCallSeconds;  ///< that one call of the allocator may take
  bool has_deadline = false;           ///< it was asked for
  std::string folder;               ///< to be in for the words to mean what they do, where that is not the user's own
  std::string label;                ///< of a cell, set by the sweep that started us
  std::vector<std::string> varied;  ///< so, the settings in which cells differ
  int parent = 0;                   ///< the sweep's process
  unsigned cells_at_a_time = 1;     ///< of the sweep, at most
  std::vector<int> after_death;     ///< descriptors of a run that crashed: see watch/death_report.h
  bool is_cell() const { return !label.empty(); }
  TableFormat format = TableFormat::kTable;
};

/// The configuration that this asks for: --record is a setting like any other.
ConfigRequest request_of(const RunOptions& options);

/// "report.record=[…]", as a word of a command line.
std::string record_override(const RunOptions& options);

}  // namespace tenon::cli
