// A training run's progress on stderr: one line that is rewritten on a terminal, finished lines only when piped.
#pragma once

#include <tenon/runtime/experiment.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tenon::cli {

class RunProgress final : public ProgressSink {
 public:
  /// `label` stands before every line ("[2/6] "); quiet: nothing at all.
  RunProgress(std::string label, bool quiet);
  ~RunProgress() override;
  void progress(const Progress& progress) override;
  void note(std::string_view line) override;

 private:
  using Clock = std::chrono::steady_clock;
  void erase();

  std::string label_;
  bool quiet_;
  bool terminal_;
  bool line_is_open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_{};
};

/// "8 s", "3 min 20 s", "2 h 5 min".
std::string format_duration(double seconds);

}  // namespace tenon::cli
