// Where a run is, and the time left.
#include <tenon/cli/live/run_live.h>
#include <tenon/cli/run/run_progress.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/report/text/progress_text.h>

#include <tenon/cli/process/interrupt.h>

#include <fmt/format.h>

#include <utility>

namespace tenon::cli {

void RunProgress::progress(const Progress& now) {
  if (!line_.is_due()) return;
  std::string text = label_ + now.phase;
  if (now.epochs > 0) text += fmt::format("  epoch {}/{}", now.epoch, now.epochs);
  if (now.steps > 0) text += fmt::format("  step {}/{}", now.step, now.steps);
  if (now.loss) text += "  loss " + loss_text(*now.loss);
  if (now.step > 0 && now.steps > now.step) {
    const double per_step = line_.seconds() / static_cast<double>(now.step);
    text += fmt::format("  {} left", format_duration(per_step * static_cast<double>(now.steps - now.step)));
  }
  line_.show(text);
}

void RunProgress::note(std::string_view line) {
  if (quiet_) return;
  line_.erase();
  say(label_ + std::string(line));
}

bool RunProgress::is_stopping() const { return interrupt_signal() != 0; }

std::unique_ptr<ProgressSink> progress_of(const RunOptions& options, const ExperimentConfig& experiment) {
  auto line = std::make_unique<RunProgress>(options.label, options.quiet);
  if (!options.watch && options.metrics.empty()) return line;
  return std::make_unique<RunLive>(experiment,
                                   LiveSettings{.watch = options.watch,
                                                .metrics = options.metrics,
                                                .interval_seconds = options.interval,
                                                .label = options.label,
                                                .quiet = options.quiet,
                                                .shell_job = options.parent},
                                   std::move(line));
}

}  // namespace tenon::cli
