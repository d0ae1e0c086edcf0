// A training run's progress on stderr: one line that is rewritten on a terminal, finished lines only when piped.
#pragma once

#include <tenon/cli/results/run_options.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>

#include <memory>
#include <string>
#include <string_view>

namespace tenon::cli {

class RunProgress final : public ProgressSink {
 public:
  /// `label` stands before every line ("[2/6] "); quiet: nothing at all.
  RunProgress(std::string label, bool quiet) : label_(std::move(label)), quiet_(quiet), line_(quiet) {}
  void progress(const Progress& now) override;
  void note(std::string_view line) override;
  bool is_stopping() const override;

 private:
  std::string label_;
  bool quiet_;
  StatusLine line_;
};

/// The same, or what --watch and --metrics show in its place.
std::unique_ptr<ProgressSink> progress_of(const RunOptions& options, const ExperimentConfig& experiment);

}  // namespace tenon::cli
