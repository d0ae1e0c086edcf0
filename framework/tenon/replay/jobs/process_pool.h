// Jobs: many replays at once, each in a child process, so that an allocator that crashes loses its own row and nothing
// else.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <functional>
#include <vector>

namespace tenon::replay {

struct Job {
  const Trace* trace = nullptr;
  const StackConfig* policy = nullptr;
  std::string label;  ///< as typed
  JobOptions options;
};

/// Told each time a job has ended: how many have, of how many.
using JobsProgress = std::function<void(std::size_t done, std::size_t total)>;

/// What a row may take without --deadline.
inline constexpr double kDefaultDeadlineSeconds = 600;
/// What a job that was stopped or never started has as its failure.
inline constexpr char kNotMeasured[] = "not measured: interrupted";

/// Rows in the order of the jobs; at most `parallel` at a time (0: as many as this process has cores). A child that
/// dies, or takes longer than the deadline, gives a row whose failure names the signal and the event that it was at.
/// Once `is_stopping` says so, which is asked whenever a signal or a row arrives, those that run are ended and the
/// others are not begun.
TENON_API std::vector<ReplayRow> run_jobs(const std::vector<Job>& jobs, unsigned parallel = 0,
                                          const JobsProgress& progress = {},
                                          const std::function<bool()>& is_stopping = {},
                                          double deadline_seconds = kDefaultDeadlineSeconds);

/// Cores that this process may use.
TENON_API unsigned usable_cores();

}  // namespace tenon::replay
