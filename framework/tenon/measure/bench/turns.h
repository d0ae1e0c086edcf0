// A subject of a bench in a process of its own, which runs a slice of its workload whenever it has the turn: a crash or
// a hang of a plugin ends that process, and two builds of one plugin never meet.
#pragma once

#include <tenon/measure/bench/pair_count.h>
#include <tenon/measure/bench/workload.h>

#include <tenon/core/error.h>
#include <tenon/core/export.h>

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tenon::measure {

/// What the process is told at its start.
struct TurnOptions {
  std::string spec;                        ///< of the allocator; empty: the harness itself
  std::uint64_t seed = 0;                  ///< of how memory is laid out before anything is loaded
  int cpu = -1;                            ///< to run on; -1: any
  std::uint64_t pairs = 0;                 ///< of a slice, where they are known: then nothing is estimated
  double slice_ns = 2e6;                   ///< an eighth of it gives the estimate
  double deadline_s = 10;                  ///< for each answer
  bool check = false;                      ///< whether blocks overlap, before anything is timed
  std::function<bool()> is_stopping = {};  ///< asked while an answer is awaited
};

/// Why a subject has no figure: what its process said at its end, or how it ended.
class TENON_EXPORT SubjectFailed : public Error {
 public:
  SubjectFailed(const std::string& what, ExitCode code, bool is_too_slow = false)
      : Error(what), code_(code), is_too_slow_(is_too_slow) {}
  ~SubjectFailed() override;
  ExitCode exit_code() const noexcept override { return code_; }
  /// It was at work at its deadline: calls were still answered.
  bool is_too_slow() const noexcept { return is_too_slow_; }

 private:
  ExitCode code_;
  bool is_too_slow_;
};

/// The bench is to end: nothing is said of the subject.
class TENON_EXPORT TurnsStopped : public Error {
 public:
  TurnsStopped() : Error("the bench was ended") {}
  ~TurnsStopped() override;
};

class Turns {
 public:
  /// Starts the process; it loads the plugin and warms the workload up.
  Turns(const WorkloadSpec& workload, const TurnOptions& options);
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// One slice of so many pairs, or as many as the workload needs, warmed up: nanoseconds per pair. Throws
  /// SubjectFailed when the process has crashed, hangs or gives up, TurnsStopped when the bench is to end.
  double slice(std::uint64_t pairs);
  /// What a pair is likely to take; 0 where that was known.
  double estimated_ns() const { return estimated_ns_; }
  /// The plugin that the allocator came from, as JSON; "null" for the harness.
  const std::string& plugin_json() const { return plugin_; }

 private:
  std::string answer();
  void end();

  const double deadline_s_;
  const std::function<bool()> is_stopping_;
  const std::unique_ptr<PairPage> pairs_;  ///< shared with the process
  pid_t pid_ = -1;
  int socket_ = -1;
  double estimated_ns_ = 0;
  std::string plugin_;
};

}  // namespace tenon::measure
