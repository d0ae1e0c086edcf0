// Nothing is run: what stands in the folder is completed and shown.
#include <tenon/cli/run/finished_run.h>

#include <tenon/cli/results/missing_recordings.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>

#include <filesystem>

namespace tenon::cli {

namespace fs = std::filesystem;

Table table_of(const RunSummary& run, const ExperimentConfig& experiment, TableFormat format) {
  return run_comparison({}, {{}}, {run},
                        {.by_purpose = experiment.section("report").boolean("by_purpose"), .format = format});
}

std::optional<ExitCode> show_finished(const RunOptions& options, const Config& config) {
  if (options.resume.empty() || !has_finished_result(options.resume)) return std::nullopt;
  const fs::path folder = options.resume;
  const RunManifest now = manifest_of(options, config);
  refuse_changes(folder, now);
  const RunManifest then = read_manifest(folder).value();
  const BasisChange change = change_between(then.basis, now.basis.value());
  if (!change.plugins.empty()) return std::nullopt;
  const ExperimentConfig experiment = config.experiment();
  complete_finished(folder, experiment.section("report").boolean("html"));
  const RunSummary summary = read_summary(folder / kResultFile);
  print(render(table_of(summary, experiment, options.format), options.format, environment_json()));
  if (!options.quiet) {
    say("tenon: this run is finished; nothing was run");
    const std::string missing = missing_recordings_message(experiment, folder, begin_command(now.command));
    if (!missing.empty()) say("tenon: " + missing);
  }
  if (options.format == TableFormat::kTable) print(fmt::format("\nresults: {}\n", folder.string()));
  if (change.is_tenon && !options.quiet)
    say(other_build_message(then.basis->version, now.basis->version, "this result is of the earlier build"));
  return exit_code_of_finished(summary.status);
}

}  // namespace tenon::cli
