// Where a run that is watched tells what it does: the screen or lines of --watch, and the page of --metrics.
#pragma once

#include <tenon/cli/live/live_figures.h>
#include <tenon/cli/live/metrics_server.h>
#include <tenon/cli/live/watch_screen.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

struct LiveSettings {
  bool watch = false;
  std::string metrics;          ///< the address; empty: none
  double interval_seconds = 1;  ///< between two looks
  std::string label;            ///< of a cell
  bool quiet = false;
  int shell_job = 0;  ///< the process that the terminal belongs to; 0: this one
};

/// Looks at the run from within, between its steps. Stands before `inner`, which shows progress where nothing is
/// watched, and gets the notes that stood on the screen when this goes.
class RunLive final : public ProgressSink {
 public:
  RunLive(const ExperimentConfig& experiment, LiveSettings settings, std::unique_ptr<ProgressSink> inner);
  ~RunLive() override;

  void progress(const Progress& now) override;
  void note(std::string_view line) override;
  bool is_stopping() const override { return inner_->is_stopping(); }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_due(Clock::time_point now) const;
  void look(const Progress& now, Clock::time_point at);
  void show();
  bool has_screen();

  const std::vector<Device> devices_;
  const LiveSettings settings_;
  const std::unique_ptr<ProgressSink> inner_;
  std::unique_ptr<WatchScreen> screen_;
  std::unique_ptr<MetricsServer> metrics_;
  bool had_screen_ = false;
  std::vector<std::string> kept_notes_;  ///< that only the screen has shown
  std::vector<double> step_ms_;          ///< since the last look
  LiveFigures figures_;
  Clock::time_point start_ = Clock::now(), last_look_ = start_;
  bool has_looked_ = false;
  std::int64_t first_step_ = -1, looked_examples_ = 0;
  Clock::time_point first_step_at_{};
};

}  // namespace tenon::cli
