// RunWatch: what stands by while a run runs, so that whatever its allocator does, the user is told. A crash or a hang
// inside the plugin is told by another process, which is started then and has a heap that nobody broke
// (death_report.h).
#pragma once

#include <tenon/cli/watch/exit_watch.h>
#include <tenon/cli/watch/hang_watch.h>
#include <tenon/cli/watch/run_page.h>
#include <tenon/conformance/service_watch.h>
#include <tenon/memory/factory.h>
#include <tenon/report/run/run_report.h>
#include <tenon/train/progress.h>

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

struct WatchedRun {
  std::string label;                          ///< of a cell
  std::string allocator;                      ///< its name
  std::filesystem::path plugin;               ///< the file that supplied it
  std::string options;                        ///< of the allocator, as in a SPEC
  std::filesystem::path folder;               ///< of the results
  std::string result;                         ///< a result.json without figures
  bool writes_page = true;                    ///< report.html too
  double call_seconds = 60;                   ///< that one call of the allocator may take
  std::vector<RunFault> earlier_faults = {};  ///< of the parts before this one, told of with a crash too
  std::function<void()> on_new_faults = {};   ///< after a step that had a fault of a kind that had none
};

/// One at a time in a process. From its making to the end of the process a fatal signal is told; while it lives, calls
/// that do not come back are too, and whoever ends the process.
class RunWatch final : public ForwardedProgress {
 public:
  /// Stands before `inner`, which outlives it.
  RunWatch(const WatchedRun& run, ProgressSink& inner);
  ~RunWatch() override;

  /// What makes `info`'s allocators, the run's own, watched. To be used while this lives.
  AllocatorInfo watched(const AllocatorInfo& info);
  /// The same for one that the layer `route` makes.
  AllocatorInfo watched_behind_route(const AllocatorInfo& info, const std::filesystem::path& plugin);
  /// result.json stands: what comes now is told on top of it.
  void settled() { page_->is_settled = true; }
  /// Whether the run has come to its first step.
  bool has_begun() const { return has_begun_; }
  /// What the run's own allocator did wrong so far.
  conformance::ServiceFaults& own_faults() { return faults_.front(); }
  /// What each of them did wrong so far.
  std::vector<RunFault> faults() const;
  /// What was finished so far, of the parts before this one too.
  ExperimentResult finished() const { return result_of(*page_); }
  /// What there is of a run that could not go on; null: nothing was said of it.
  const ExperimentResult* broken_off() const { return broken_off_ ? &*broken_off_ : nullptr; }

  void entering(std::string_view what) override;
  void beginning() override;
  void figures(const ExperimentResult& part) override;
  void earlier_figures(const ExperimentResult& earlier) override;
  void broken_off(const ExperimentResult& so_far) override;

 private:
  std::string moment() const;
  void overdue(std::size_t slot, double seconds);
  void keep_faults_on_page();
  double patience() const;
  void end_a_fork() const;

  RunPage* const page_;
  const pid_t process_;
  const ExitWatch exits_;
  mutable std::mutex doing_mutex_;  ///< of the page's `doing`, where this process reads it
  const double call_seconds_;
  std::mutex page_faults_mutex_;                   ///< of the page's `faults`, where this process writes it
  mutable std::mutex faults_mutex_;                ///< of the list; each of its members has one of its own
  std::deque<conformance::ServiceFaults> faults_;  ///< by CallFacts::allocator
  const std::vector<RunFault> earlier_faults_;
  const std::function<void()> on_new_faults_;
  std::size_t told_faults_ = 0;
  KeptFigures earlier_;
  std::optional<ExperimentResult> broken_off_;
  bool has_begun_ = false;
  std::unique_ptr<HangWatch> hangs_;
};

}  // namespace tenon::cli
