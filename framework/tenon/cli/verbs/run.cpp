// `tenon run`: one experiment in this process, or a sweep with a process for each cell.
#include <tenon/cli/estimate/estimate_layouts.h>
#include <tenon/cli/launch/cell_worker.h>
#include <tenon/cli/launch/launcher.h>
#include <tenon/cli/live/metrics_server.h>
#include <tenon/cli/process/exit_code.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/results/allocator_file.h>
#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/cli/run/one_run.h>
#include <tenon/cli/run/rank_run.h>
#include <tenon/cli/run/sweep.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/terminal/without_effect.h>
#include <tenon/cli/verb.h>
#include <tenon/cli/watch/death_report.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/units.h>
#include <tenon/report/kit_advice.h>
#include <tenon/runtime/config/recordings.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/config/unread_settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>

namespace tenon::cli {

namespace {

std::int64_t device_bytes_of(const RunOptions& options) {
  return options.device_size.empty() ? 0 : static_cast<std::int64_t>(parse_size(options.device_size));
}

/// "# " before each line, for TOML.
std::string commented(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
  return out;
}

/// What is wrong with the settings or with the allocator is told, with the exit code that the run would have.
/// An estimate opens none of them: a run would say it then.
void check_devices(const ExperimentConfig& experiment) {
  for (const Device device : experiment.devices) {
    const std::string kind(device.type().name());
    const auto given = experiment.backend_options.find(kind);
    check_index(device, given == experiment.backend_options.end() ? backend_options(kind) : given->second);
  }
}

ExitCode estimate_one(const RunOptions& options, const Config& config) {
  const ExperimentConfig experiment = config.experiment();
  check_devices(experiment);
  const int launched = experiment.distributed.name.empty() ? 1 : rank_environment().size;
  const RanksEstimate estimate =
      estimate_ranks(experiment, options.ranks > 0 ? options.ranks : launched, options.call_seconds);
  const EstimateApart& apart = estimate.first;
  if (apart.exit_code == static_cast<int>(ExitCode::kUsage)) throw ConfigError(apart.estimate.problem);
  const std::int64_t device_bytes = device_bytes_of(options);
  const bool has_rows = estimate.rows.size() > 1;
  if (options.format == TableFormat::kTable) {
    print_exactly(config.resolved_toml() + "\n" + estimate_comment(apart.estimate));
    if (has_rows)
      print_exactly("#\n" + commented(ranks_table(estimate.rows, device_bytes).text(output_screen()) +
                                      ranks_remark(estimate.rows, device_bytes)));
  } else {
    print_exactly(
        render(has_rows ? ranks_table(estimate.rows, device_bytes) : estimate_table({}, {{}}, {apart.estimate}),
               options.format, environment_json()));
  }
  const std::vector<std::string> complaints = apart.complaints(experiment.allocator.policy.name);
  for (const std::string& complaint : complaints) say("tenon: " + complaint);
  if (const std::string spec = spec_of_allocator(experiment); !complaints.empty() && !spec.empty())
    say(kit_advice({spec}));
  if (const std::string end = apart.end_of_run(); !end.empty()) say("tenon: " + end);
  const auto is_beyond = [device_bytes](const RankRow& row) { return row.need.reserved > device_bytes; };
  if (apart.exit_code == 0 && device_bytes > 0 && std::ranges::any_of(estimate.rows, is_beyond)) {
    if (!has_rows)
      say(fmt::format("tenon: the run would reserve {}, which does not fit the {} of --device-size",
                      format_bytes(static_cast<std::size_t>(estimate.rows.front().need.reserved)),
                      format_bytes(static_cast<std::size_t>(device_bytes))));
    return ExitCode::kOutOfMemory;
  }
  return static_cast<ExitCode>(apart.exit_code);
}

ExitCode estimate_all_layouts(const RunOptions& options, const Config& config) {
  const std::int64_t device_bytes = device_bytes_of(options);
  std::vector<LayoutRow> rows;
  {
    ProgressLine line("estimating", options.quiet);
    rows = estimate_layouts(config.experiment(), options.layouts, options.call_seconds,
                            [&](std::size_t done, std::size_t all) { line.update(done, all); });
  }
  print(render(layouts_table(rows, device_bytes), options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(layouts_footer(rows, device_bytes));
  end_promise();
  if (interrupt_signal() != 0) return interrupted_exit_code();
  return device_bytes > 0 && !has_fitting(rows, device_bytes) ? ExitCode::kOutOfMemory : ExitCode::kDone;
}

/// Options of plans are those of a dry run of one experiment.
void check_plan_options(const RunOptions& options, bool is_sweep) {
  const auto refuse = [](const std::string& why) { throw ConfigError(why); };
  const char* const asked = options.layouts > 0 ? "--layouts" : options.ranks > 0 ? "--ranks" : nullptr;
  if (asked != nullptr && !options.dry_run) refuse(fmt::format("{} is an estimate: it goes with --dry-run", asked));
  if (asked != nullptr && is_sweep)
    refuse(fmt::format("{} is of one experiment: --no-sweep leaves out the sweep", asked));
  if (!options.device_size.empty() && is_sweep)
    refuse("--device-size is of one experiment: --no-sweep leaves out the sweep");
  if (!options.device_size.empty() && !options.dry_run)
    refuse("--device-size is what an estimate is held against: it goes with --dry-run");
}

/// Cells are watched one after the other, here.
void check_watch_options(const RunOptions& options, bool is_sweep) {
  const char* const asked = options.watch ? "--watch" : !options.metrics.empty() ? "--metrics" : nullptr;
  if (asked == nullptr) {
    if (options.has_interval) throw ConfigError("--interval is between two looks: it goes with --watch or --metrics");
    return;
  }
  if (is_sweep && MetricsServer::takes_free_port(options.metrics))
    throw ConfigError("--metrics 0 would take another port for each cell of the sweep: name a port");
  if (is_sweep && options.jobs > 1)
    throw ConfigError(fmt::format("{} shows one run, and -j {} runs several cells at a time: leave one of both out",
                                  asked, options.jobs));
  if (!options.launcher.empty())
    throw ConfigError(
        fmt::format("{} looks at runs on this machine, and --launcher runs them elsewhere: leave one of "
                    "both out",
                    asked));
}

void say_what_changes_nothing(const RunOptions& options, bool is_sweep) {
  if (options.quiet || options.is_cell()) return;
  std::vector<std::string> without_effect;
  if (options.jobs > 1 && (options.dry_run || !is_sweep)) without_effect.emplace_back("--jobs");
  if (options.dry_run && !options.out.empty()) without_effect.emplace_back("--out");
  if (options.dry_run && !options.record.empty()) without_effect.emplace_back("--record");
  if (options.dry_run && options.watch) without_effect.emplace_back("--watch");
  if (options.dry_run && !options.metrics.empty()) without_effect.emplace_back("--metrics");
  if (!options.launcher_args.empty() && options.launcher.empty())
    say_without_effect({"--launcher-args"}, "no --launcher takes them");
  say_without_effect(without_effect, options.dry_run ? "a dry run runs and writes nothing" : "this is one run");
}

/// A setting may stand where the experiment does: `tenon run --resume DIR train.lr=0.1`.
RunOptions sorted(RunOptions options) {
  const std::string word = options.file;
  std::error_code none;
  if (word.find('=') == std::string::npos || std::filesystem::exists(word, none)) return options;
  options.overrides.insert(options.overrides.begin(), word);
  options.file.clear();
  if (options.resume.empty())
    throw ConfigError("'" + word + "' is a setting: name the experiment's TOML file before it");
  return options;
}

/// One experiment, by this process or as one of several ranks. One that cannot go on tells the others, so that none of
/// them waits for it.
ExitCode run_experiment_of(const RunOptions& options, const Config& config) {
  const std::shared_ptr<Communicator> ranks = meet_ranks(options, config);
  if (!options.is_cell() && !options.quiet) catch_interrupts("ending after this step");  // there will be steps
  if (ranks == nullptr) return run_one(options, config);
  if (ranks->size() > 1) take_terms_for_one();
  if (ranks->rank() != 0) return run_rank(options, config, ranks);
  try {
    const ExitCode code = run_one(options, config, ranks);
    if (code != ExitCode::kDone) ranks->abort("the run has ended: see its result", code);
    return code;
  } catch (const std::exception& error) {
    ranks->abort(error.what(), exit_code_of(error));
    throw;
  }
}

/// Of several processes rank 0 alone speaks, until something goes wrong.
RunOptions silenced(RunOptions options) {
  const bool is_silent = is_silent_rank(options);  // a wrong variable is said here, and not at a line of the file
  options.quiet = options.quiet || is_silent;
  return options;
}

ExitCode run(const RunOptions& given) {
  const RunOptions asked = silenced(sorted(given));
  if (asked.file.empty() && asked.resume.empty())
    throw ConfigError("name an experiment's TOML file, or --resume with the folder of a run (see tenon run --help)");
  const RunOptions options = asked.resume.empty() ? asked : resumed_options(asked);
  const Config config = Config::load(request_of(options));
  static_cast<void>(recorded_formats(config.experiment()));  // a wrong word is refused before anything runs
  if (!options.quiet && !options.is_cell()) {
    for (const std::string& remark : config.remarks()) say(remark);
    for (const std::string& remark : unread_model_settings(config)) say(remark);
  }
  const bool is_sweep = !config.sweep_cells().empty();
  if (!asked.resume.empty() && !asked.out.empty())
    throw ConfigError("--resume names the folder already; leave out --out");
  if (!options.launcher.empty() && !is_sweep)
    throw ConfigError("--launcher runs the cells of a sweep elsewhere, and this is one run: leave it out");
  say_what_changes_nothing(asked, is_sweep);
  check_plan_options(options, is_sweep);
  check_watch_options(options, is_sweep);
  if (options.dry_run) compare_dry_runs(options, config);
  if (options.dry_run && is_silent_rank(options)) return ExitCode::kDone;
  if (is_sweep && rank_environment().size > 1)
    throw ConfigError(
        "several processes cannot share a sweep: start tenon alone for it, or leave out the sweep with --no-sweep");
  if (options.dry_run && is_sweep) {
    catch_interrupts(options.quiet ? "" : "ending with the cells that are estimated");
    return estimate_sweep(options, config);
  }
  if (options.layouts > 0) {
    catch_interrupts(options.quiet ? "" : "ending with the layouts that are estimated");
    return estimate_all_layouts(options, config);
  }
  if (options.dry_run) return estimate_one(options, config);
  if (options.is_cell()) end_with_parent(options.parent);
  const bool is_one = config.sweep_keys().empty();
  catch_interrupts(options.is_cell() || options.quiet || is_one ? "" : "ending after this step");
  return is_one ? run_experiment_of(options, config) : run_sweep(options, config);
}

/// A cell says itself which one it is of those whose messages stand together.
ExitCode run_labelled(const RunOptions& options) {
  if (!options.work_in.empty())
    return work_on_cells(options.work_in,
                         options.work_on < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(options.work_on)));
  if (!options.after_death.empty())
    return static_cast<ExitCode>(report_death(options.after_death.at(0), options.after_death.at(1)));
  if (!options.is_cell()) return run(options);
  try {
    return run(options);
  } catch (const Error& problem) {
    say(options.label + "tenon: " + problem.what());
    return problem.exit_code();
  }
}

}  // namespace

void add_run(Verb program, Outcome& outcome) {
  auto options = std::make_shared<RunOptions>();
  const Verb verb = program.add_verb("run", "run an experiment, or a sweep with one process for each cell");
  verb.add_option("experiment", options->file, "the experiment's TOML file");
  verb.add_option("settings", options->overrides, "KEY=VALUE: overrides a setting of the file; VALUE as in TOML");
  const Option sweep =
      verb.add_flag("--sweep", options->sweep, "sweep over KEY=[a, b] or KEY=a,b of the command line, too");
  verb.add_flag("--no-sweep", options->no_sweep, "ignore [sweep]").excludes(sweep);
  verb.add_option("--out", options->out,
                  "folder of the results; keeps those that are there; default: tenon-out/NAME-DATE-TIME")
      .type_name("DIR");
  verb.add_option("--resume", options->resume, "continue the interrupted run or sweep of this folder").type_name("DIR");
  const Option jobs =
      verb.add_option("--jobs,-j", options->jobs, "cells of a sweep at a time, within cores and memory; default: 1")
          .type_name("N")
          .range(1, 1024);
  verb.add_option("--launcher", options->launcher,
                  "run the cells elsewhere: as a job array of Slurm, or on the slots of mpirun; default: here")
      .type_name("ENGINE")
      .words(launcher_names())
      .check([](const std::string& word) { return problem_of_launcher(word); });
  verb.add_option("--launcher-args", options->launcher_args,
                  "words for sbatch or mpirun: \"--partition=gpu --time=60\"")
      .type_name("WORDS");
  const Option deadline =
      verb.add_option("--deadline", options->call_seconds,
                      "for one call of the allocator (60): one that takes longer hangs, and the run says where")
          .type_name("SECONDS")
          .range(0.1, 86400.0);
  verb.add_option("--record", options->record,
                  fmt::format("record its memory: {} or {}", recording_words(), kAllRecordings))
      .type_name("LIST");
  verb.add_flag("--watch", options->watch,
                "show loss, speed and memory while it runs: on the screen of a terminal, in lines elsewhere");
  verb.add_option("--metrics", options->metrics, "the same for Prometheus: a page on http://127.0.0.1:PORT/metrics")
      .type_name("[ADDRESS:]PORT")
      .check([](const std::string& address) { return MetricsServer::problem_of(address); });
  const Option interval =
      verb.add_option("--interval", options->interval, "between two looks of --watch and --metrics (1)")
          .type_name("SECONDS")
          .range(0.01, 86400.0);
  verb.add_flag("--dry-run", options->dry_run, "check the settings and estimate the memory; run nothing");
  const Option ranks = verb.add_option("--ranks", options->ranks, "with --dry-run: what each of so many ranks needs")
                           .type_name("N")
                           .range(1, 4096);
  verb.add_option("--layouts", options->layouts,
                  "with --dry-run: ways to spread the model over so many devices, and what they need")
      .type_name("N")
      .range(1, 4096)
      .excludes(ranks);
  verb.add_option("--device-size", options->device_size, "of each device: which ranks or layouts fit")
      .type_name("SIZE")
      .check([](const std::string& size) { return forgotten_unit(size); });
  add_format_option(verb, options->format);
  add_quiet_option(verb, options->quiet);
  verb.add_option("--work-in", options->work_in).hidden();
  verb.add_option("--work-on", options->work_on).hidden();
  verb.add_option("--label", options->label).hidden();
  verb.add_option("--parent", options->parent).hidden();
  verb.add_option("--varied", options->varied).hidden();
  verb.add_option("--cells-at-a-time", options->cells_at_a_time).hidden();
  verb.add_option("--after-death", options->after_death).expects(2).hidden();
  verb.footer(example("tenon run experiment.toml train.epochs=3 allocator.name=direct,caching --sweep"));
  verb.callback([options, deadline, interval, jobs, &outcome] {
    options->has_deadline = deadline.is_given();
    options->has_jobs = jobs.is_given();
    options->has_interval = interval.is_given();
    outcome.exit_code = run_labelled(*options);
  });
}

}  // namespace tenon::cli
