// What `tenon run` says beside its tables: what was kept, what has changed, how a run or a sweep ended, and the command
// that goes on with it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/train/experiment_result.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

/// "tenon run --resume DIR", with -j N where a sweep has several cells at a time.
TENON_API std::string resume_command(const std::filesystem::path& folder, unsigned jobs = 1);

/// Former results were moved out of the way of a new run.
TENON_API std::string kept_message(const std::filesystem::path& folder, const std::filesystem::path& kept);

/// A run that is resumed stands on other plugins than before: it begins again. `kept` may be empty: nothing was there.
TENON_API std::string begins_again_message(const std::vector<std::string>& plugins, const std::filesystem::path& kept);

/// The same of cells of a sweep, by number from 0, one or more; `kept` is of one of them.
TENON_API std::string cells_again_message(const std::vector<std::string>& plugins,
                                          const std::vector<std::size_t>& cells, const std::filesystem::path& kept);

/// Of a run or cells that stay as they are, or go on, though Tenon itself is another build: `of` says which.
TENON_API std::string other_build_message(const std::string& then, const std::string& now, const std::string& of);

/// "SIGINT after step 12 of 60": the error of a run that a signal ended.
TENON_API std::string interruption(const std::string& signal, const ExperimentResult& result);

/// A run that was interrupted so; `command` goes on with it, empty where nothing can.
TENON_API std::string interrupted_message(const std::string& interruption, const ExperimentResult& result,
                                          const std::string& command);

/// Appended to what could not be written, which may end in commands; empty without one of its own.
TENON_API std::string how_to_write_again(const std::string& command, bool stands_below_commands);

/// Of a run that failed with a state to go on from.
TENON_API std::string go_on_message(const std::string& command);

/// Of a run under a plugin that was disqualified: once it is mended the command runs again what it spoilt.
TENON_API std::string once_mended_message(const std::string& command);

/// Of a sweep that was asked for several cells at a time, each of which uses so many threads of so many cores.
TENON_API std::string one_at_a_time_message(unsigned jobs, unsigned threads, unsigned cores);

struct SweepEnding {
  std::string signal;        ///< that cut it short; empty: none
  std::size_t finished = 0;  ///< cells, those that are disqualified included
  std::size_t cells = 0;     ///< in all
  std::size_t disqualified = 0;
  bool is_unwritten = false;  ///< its results could not be written
  std::string command;        ///< that goes on; empty where nothing can
};
/// Empty where there is nothing left to do.
TENON_API std::string sweep_ended_message(const SweepEnding& ending);

/// Of a sweep whose folder somebody removed while it ran: so many finished cells were written again, or are lost
/// together with what they had recorded.
TENON_API std::string restored_message(const std::filesystem::path& folder, std::size_t cells);
TENON_API std::string lost_message(const std::filesystem::path& folder, std::size_t cells, const std::string& command);

}  // namespace tenon
