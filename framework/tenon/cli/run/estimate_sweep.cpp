// What each cell of a sweep would need. Declared in sweep.h.
#include <tenon/cli/estimate/estimate_apart.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/run/sweep.h>
#include <tenon/cli/run/sweep_cells.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>

#include <utility>

namespace tenon::cli {

ExitCode estimate_sweep(const RunOptions& options, const Config& config) {
  std::vector<std::vector<std::string>> values;
  std::vector<Estimate> estimates;
  int code = 0;
  const std::vector<SweepPoint> cells = config.sweep_cells();
  ProgressLine progress("estimating", options.quiet);
  for (const SweepPoint& cell : cells) {
    if (interrupt_signal() != 0) break;
    progress.update(estimates.size(), cells.size());
    values.push_back(cell.values);
    const ExperimentConfig experiment = config_of(options, cell).experiment();
    EstimateApart apart = estimate_apart(experiment, options.call_seconds);
    code = code_of_both(code, apart.exit_code);
    const std::vector<std::string> complaints = apart.complaints(experiment.allocator.policy.name);
    const std::string end = apart.end_of_run();
    estimates.push_back(std::move(apart.estimate));
    for (const std::string& complaint : complaints) say(fmt::format("cell {}: {}", estimates.size(), complaint));
    if (!end.empty()) say(fmt::format("cell {}: {}", estimates.size(), end));
  }
  if (options.format == TableFormat::kTable || options.format == TableFormat::kMarkdown)
    values = with_short_specs(config.sweep_keys(), std::move(values));
  print(render(estimate_table(config.sweep_keys(), values, estimates), options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(estimate_footer(estimates.size()));
  end_promise();
  if (estimates.size() < cells.size()) {
    say(fmt::format("tenon: ended by {}: {} of {} cells are estimated", interrupt_name(), estimates.size(),
                    cells.size()));
    return interrupted_exit_code();
  }
  return static_cast<ExitCode>(code);
}

}  // namespace tenon::cli
