// `tenon run`: one experiment in this process, or a sweep with a process for each cell.
#include <tenon/cli/estimate.h>
#include <tenon/cli/oom_advice.h>
#include <tenon/cli/run_files.h>
#include <tenon/cli/run_progress.h>
#include <tenon/cli/run_recording.h>
#include <tenon/cli/sections.h>
#include <tenon/cli/verb.h>
#include <tenon/cli/verbs/sweep.h>

#include <tenon/device/device_state.h>
#include <tenon/report/run_html.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool sweep = false;
  bool no_sweep = false;
  std::string out;
  std::string record;
  bool dry_run = false;
  bool quiet = false;
  std::string label;  ///< of a cell, set by the sweep that started us
  TableFormat format = TableFormat::kTable;
};

/// --record is a setting like any other.
std::string record_override(const RunOptions& options) { return "report.record=[" + options.record + "]"; }

ConfigRequest request_of(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.record.empty()) overrides.push_back(record_override(options));
  ConfigRequest request = experiment_request(options.file, std::move(overrides));
  request.sweep_overrides = options.sweep;
  request.ignore_sweep = options.no_sweep;
  return request;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DeviceState* opened(Device device) {
  const std::vector<DeviceState*> open = open_devices();
  const auto found =
      std::find_if(open.begin(), open.end(), [&](DeviceState* state) { return state->device() == device; });
  return found == open.end() ? nullptr : *found;
}

void write_results(const fs::path& folder, const Config& config, const RunRecord& record) {
  const std::string json = result_json(config, record);
  write_file(folder / "result.json", json);
  if (config.experiment().section("report").boolean("html")) write_file(folder / "report.html", run_html(json));
}

/// Files that layers write belong to the run's folder, unless the user gave them a place of their own.
void place_layer_files(ExperimentConfig& experiment, const fs::path& folder) {
  for (LayerConfig& layer : experiment.allocator.layers) {
    for (const OptionSpec& option : layer.options.schema()) {
      if (option.name != "file" || option.type != OptionType::kText) continue;
      const fs::path file = layer.options.text("file");
      if (!file.empty() && file.is_relative()) layer.options.set("file", fs::absolute(folder / file).string());
    }
  }
}

/// Runs here. What goes wrong is recorded, then thrown on.
ExitCode run_one(const RunOptions& options, const Config& config) {
  ExperimentConfig experiment = config.experiment();
  const fs::path folder = make_output_folder(options.out, experiment.name);
  place_layer_files(experiment, folder);
  auto line = std::make_unique<RunProgress>(options.label, options.quiet);
  ExperimentConfig recorded = experiment;  // with a layer more
  RunRecording recording(recorded, folder, *line);
  write_file(folder / "config.resolved.toml", config.resolved_toml());
  const auto start = std::chrono::steady_clock::now();
  RunRecord record;
  std::optional<Error> unwritten;  // a recording that was asked for and is not there
  const auto settle = [&](const char* status, const char* error, ExitCode code) {
    line.reset();
    record.status = status;
    record.error = error;
    record.exit_code = static_cast<int>(code);
    record.seconds = seconds_since(start);
    if (DeviceState* device = opened(experiment.device)) {
      const MemoryStats stats = device->allocator().stats();
      if (code != ExitCode::kDone) record.result.memory = stats;
      record.leaked_bytes = stats.requested_bytes.current;
      try {
        record.recorded = recording.finish(record.result, code == ExitCode::kOutOfMemory);
      } catch (const Error& problem) {
        unwritten = problem;
      }
    }
    write_results(folder, config, record);
  };
  try {
    install(recorded);
    recording.start();
    record.result = run_experiment(recorded, recording);
  } catch (const OutOfMemory& failure) {
    OutOfMemoryInfo info = failure.info();
    if (config.experiment().section("report").boolean("replay_ooms"))
      record.would_fit = replay_failure(config.experiment().allocator, recording.recorder(), info);
    const OutOfMemory error(std::move(info));
    settle("out_of_memory", error.what(), error.exit_code());
    say("results: " + folder.string());
    throw error;
  } catch (const Error& error) {
    settle("failed", error.what(), error.exit_code());
    say("results: " + folder.string());
    throw;
  } catch (const std::exception& error) {
    settle("failed", error.what(), ExitCode::kFailed);
    say("results: " + folder.string());
    throw;
  }
  settle("done", "", ExitCode::kDone);
  if (unwritten) throw Error(*unwritten);
  if (record.leaked_bytes != 0) {
    say(fmt::format("tenon: {} bytes are still allocated on {} after the run", record.leaked_bytes,
                    experiment.device.str()));
  }
  if (experiment.section("report").boolean("estimate")) {
    shutdown();
    record.estimate = estimate_of(experiment);
    write_results(folder, config, record);
  }
  const bool by_purpose = experiment.section("report").boolean("by_purpose");
  const Table table = comparison({}, {{}}, {read_summary(folder / "result.json")}, by_purpose);
  print(render(table, options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(fmt::format("\nresults: {}\n", folder.string()));
  shutdown();
  return ExitCode::kDone;
}

std::string cell_folder_name(std::size_t index, const std::vector<std::string>& values) {
  std::string name = fmt::format("{:03}", index + 1);
  for (const std::string& value : values) name += "-" + value;
  for (char& c : name) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!keep) c = '_';
  }
  return name.substr(0, 100);
}

/// The settings of a cell on the command line: those of the user that the cell does not set itself, then its own.
std::vector<std::string> cell_overrides(const RunOptions& options, const SweepPoint& cell) {
  const auto key_of = [](const std::string& word) { return word.substr(0, word.find('=')); };
  std::vector<std::string> words;
  for (const std::string& word : options.overrides) {
    const bool is_swept = std::any_of(cell.overrides.begin(), cell.overrides.end(),
                                      [&](const std::string& own) { return key_of(own) == key_of(word); });
    if (!is_swept) words.push_back(word);
  }
  words.insert(words.end(), cell.overrides.begin(), cell.overrides.end());
  return words;
}

/// One sentence on whether the cells computed the same thing.
std::string losses_remark(const std::vector<CellSummary>& cells) {
  std::map<std::string, int> hashes;
  for (const CellSummary& cell : cells) {
    if (!cell.losses_hash.empty()) ++hashes[cell.losses_hash];
  }
  if (hashes.empty() || cells.size() < 2) return {};
  if (hashes.size() == 1) return fmt::format("losses: equal to the last bit in {} cells\n", hashes.begin()->second);
  return fmt::format("losses: {} different courses in {} cells\n", hashes.size(), cells.size());
}

ExitCode run_sweep(const RunOptions& options, const Config& config) {
  const std::vector<std::string> keys = config.sweep_keys();
  const auto cells = config.sweep_cells();
  const fs::path folder = make_output_folder(options.out, config.experiment().name);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::vector<std::string>> values;
  std::vector<CellSummary> summaries;
  std::vector<int> codes;
  std::vector<std::pair<std::string, std::string>> results;  // of the cells that left one: name, text of result.json
  for (std::size_t i = 0; i < cells.size(); ++i) {
    values.push_back(cells[i].values);
    const std::string label = fmt::format("[{}/{}] ", i + 1, cells.size());
    if (!options.quiet) {
      const double elapsed = seconds_since(start);
      const std::string left =
          i == 0 || elapsed < 2
              ? ""
              : fmt::format("  (about {} left)",
                            format_duration(elapsed / static_cast<double>(i) * static_cast<double>(cells.size() - i)));
      const std::vector<std::string>& words = keys.front() == "row" ? cells[i].values : cells[i].overrides;
      say(fmt::format("{}{}{}", label, fmt::join(words, " "), left));
    }
    SweepCell cell{{"run", options.file}, folder / "cells" / cell_folder_name(i, cells[i].values)};
    for (std::string& word : cell_overrides(options, cells[i])) cell.arguments.push_back(std::move(word));
    if (!options.record.empty()) cell.arguments.push_back(record_override(options));
    for (const std::string& word :
         {std::string("--no-sweep"), std::string("--out"), cell.folder.string(), std::string("--label"), label}) {
      cell.arguments.push_back(word);
    }
    if (options.quiet) cell.arguments.push_back("--quiet");
    CellOutcome outcome = run_cell(cell);
    if (std::ifstream file(cell.folder / "result.json"); outcome.exit_code == 0 && file) {
      results.emplace_back(fmt::format("{}", fmt::join(values.back(), ", ")),
                           std::string(std::istreambuf_iterator<char>(file), {}));
    }
    if (outcome.exit_code != 0 && !options.quiet)
      say(fmt::format("{}{}: {}", label, outcome.summary.status, outcome.summary.error));
    summaries.push_back(std::move(outcome.summary));
    codes.push_back(outcome.exit_code);
  }
  const bool by_purpose = config.experiment().section("report").boolean("by_purpose");
  const Table table = comparison(keys, values, summaries, by_purpose);
  write_file(folder / "result.json", render(table, TableFormat::kJson, environment_json()));
  if (config.experiment().section("report").boolean("html")) {
    write_file(folder / "report.html", sweep_html(config.experiment().name, table, results));
  }
  print(render(table, options.format, environment_json()));
  if (options.format == TableFormat::kTable) {
    for (std::size_t i = 0; i < summaries.size(); ++i) {
      if (codes[i] != 0)
        print(fmt::format("cell {} ({}): {}\n", i + 1, fmt::join(values[i], ", "), summaries[i].error));
    }
    print(fmt::format("{}\nresults: {}\n", losses_remark(summaries), folder.string()));
  }
  // Cells that failed for one and the same reason hand on their code; otherwise the sweep just failed.
  int code = 0;
  for (const int one : codes) {
    if (one != 0) code = code == 0 || code == one ? one : static_cast<int>(ExitCode::kFailed);
  }
  return static_cast<ExitCode>(code);
}

/// The experiment of one cell.
ExperimentConfig experiment_of(const RunOptions& options, const SweepPoint& cell) {
  RunOptions alone = options;
  alone.sweep = false;
  alone.no_sweep = true;
  alone.overrides = cell_overrides(options, cell);
  return Config::load(request_of(alone)).experiment();
}

ExitCode dry_run(const RunOptions& options, const Config& config) {
  const auto cells = config.sweep_cells();
  if (cells.empty()) {
    print(config.resolved_toml() + "\n" + as_comment(estimate_of(config.experiment())));
    return ExitCode::kDone;
  }
  std::vector<Column> columns = {{"cell", "cell"}};
  for (const std::string& key : config.sweep_keys()) columns.push_back({key, key});
  for (const char* figure : {"requested", "allocated", "reserved"}) {
    columns.push_back({fmt::format("estimated_peak_{}_bytes", figure), fmt::format("est. {}", figure)});
  }
  columns.push_back({"parameters", "parameters"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<Cell> row = {static_cast<std::int64_t>(i + 1)};
    for (const std::string& value : cells[i].values) row.emplace_back(value);
    const Estimate estimate = estimate_of(experiment_of(options, cells[i]));
    if (!estimate.memory) say(fmt::format("cell {}: no estimate of its memory: {}", i + 1, estimate.problem));
    for (const Stat MemoryStats::*figure :
         {&MemoryStats::requested_bytes, &MemoryStats::allocated_bytes, &MemoryStats::reserved_bytes}) {
      row.push_back(estimate.memory ? Cell(Bytes{(estimate.memory->memory.*figure).peak}) : Cell());
    }
    row.push_back(estimate.memory ? Cell(estimate.memory->parameters) : Cell());
    table.add_row(std::move(row));
  }
  print(render(table, options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(fmt::format("{} cells; nothing was run\n", cells.size()));
  return ExitCode::kDone;
}

ExitCode run(const RunOptions& options) {
  const Config config = Config::load(request_of(options));
  static_cast<void>(recorded_formats(config.experiment()));  // a wrong word is refused before anything runs
  if (options.dry_run) return dry_run(options, config);
  return config.sweep_keys().empty() ? run_one(options, config) : run_sweep(options, config);
}

}  // namespace

void add_run(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = program.add_subcommand("run", "run an experiment, or a sweep with one process for each cell");
  verb->add_option("experiment", options->file, "the experiment's TOML file")->required();
  verb->add_option("settings", options->overrides, "KEY=VALUE: TOML values, stronger than the file");
  CLI::Option* sweep =
      verb->add_flag("--sweep", options->sweep, "KEY=[a, b] and KEY=a,b are sweeps too, besides [sweep]");
  verb->add_flag("--no-sweep", options->no_sweep, "ignore [sweep]")->excludes(sweep);
  verb->add_option("--out", options->out, "where results go (tenon-out/NAME-DATE-TIME)")->type_name("DIR");
  verb->add_option("--record", options->record,
                   "trace, text, snapshot, chrome, folded, tensorboard, all: of its memory")
      ->type_name("LIST");
  verb->add_flag("--dry-run", options->dry_run,
                 "check everything, say what would run and the memory that it would need, run nothing");
  add_format_option(*verb, options->format);
  add_quiet_option(*verb, options->quiet);
  verb->add_option("--label", options->label)->group("");
  verb->footer(example("tenon run experiment.toml train.epochs=3 allocator.name=direct,caching --sweep"));
  verb->callback([options, &outcome] { outcome.exit_code = run(*options); });
}

}  // namespace tenon::cli
