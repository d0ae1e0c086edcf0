// `tenon compare`: results side by side.
#include <tenon/cli/command_files.h>
#include <tenon/cli/gate_sentences.h>
#include <tenon/cli/verb.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/measure/compare/comparison.h>
#include <tenon/measure/compare/joined_results.h>
#include <tenon/report/measure/compare_report.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/result_files.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct CompareOptions {
  std::vector<std::string> results;
  std::vector<std::string> filters;
  std::vector<std::string> gates;
  std::string matrix;
  std::string html;
  bool all = false;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

void check_metric(const std::string& metric) {
  if (metric.empty() || measure::find_figure(metric) != nullptr) return;
  std::vector<std::string> known;
  for (const measure::FigureInfo& info : measure::known_figures()) known.emplace_back(info.key);
  const std::string near = nearest_name(metric, known);
  throw ConfigError(
      fmt::format("--matrix {}: unknown figure; {}", metric,
                  near.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : "did you mean " + near + "?"));
}

/// The word between the results of one side and those of the next.
constexpr char kVersus[] = "vs";

/// Each result is a side; with "vs" what stands between two of them.
std::vector<std::vector<std::string>> sides_of(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> sides;
  const bool has_versus = std::ranges::find(words, kVersus) != words.end();
  bool is_new = true;
  for (const std::string& word : words) {
    if (word == kVersus) {
      if (is_new) break;
      is_new = true;
      continue;
    }
    if (is_new || !has_versus) sides.emplace_back();
    sides.back().push_back(word);
    is_new = false;
  }
  if (has_versus && is_new)
    throw ConfigError(
        "vs: stands between the results of two sides, as in `tenon compare old-* vs new-*`; a file of that name is "
        "./vs");
  return sides;
}

/// A run or a sweep that was killed has left a folder without a result.
void refuse_unfinished(const std::string& path) {
  std::error_code absent;
  const fs::path folder = path;
  if (fs::exists(folder / kResultFile, absent) || !fs::exists(folder / kManifestFile, absent)) return;
  throw ConfigError(fmt::format("{}: the folder holds no {}: what ran there has not ended; go on with it:\n  {}", path,
                                kResultFile, resume_command(folder)));
}

std::vector<measure::ResultSet> read_sides(const std::vector<std::vector<std::string>>& sides) {
  std::vector<measure::ResultSet> sets;
  for (const std::vector<std::string>& side : sides) {
    std::vector<measure::ResultSet> results;
    for (const std::string& path : side) {
      refuse_unfinished(path);
      results.push_back(measure::read_result(path));
    }
    sets.push_back(measure::joined(std::move(results)));
  }
  return sets;
}

/// What would change nothing is a mistake.
void refuse_idle_options(const CompareOptions& options, bool takes_stdout) {
  if (takes_stdout && options.format != TableFormat::kTable)
    throw ConfigError(
        "-: standard output takes one thing: with --format json, csv or markdown give a file's name for --html");
  const bool shows_matrix = options.format == TableFormat::kTable || options.format == TableFormat::kMarkdown;
  if (!options.matrix.empty() && !shows_matrix && options.html.empty())
    throw ConfigError(
        "--matrix: JSON and CSV hold every figure and no matrix: use it with --format table or "
        "markdown, or with --html");
}

/// The same of a matrix that the results have nothing for.
void refuse_idle_matrix(const std::string& metric, const measure::Comparison& comparison) {
  if (metric.empty()) return;
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    if (measure::figure_matrix(comparison, s, metric)) return;
  }
  const measure::ResultKind kind = comparison.sets.front().kind;
  if (kind == measure::ResultKind::kRun || kind == measure::ResultKind::kSweep)
    throw ConfigError(
        fmt::format("--matrix {}: {} is {}, which has no histories to make a matrix of; leave it out: "
                    "the table has the figure, with --all where it is equal",
                    metric, comparison.sets.front().path, measure::kind_name(kind)));
  throw ConfigError(
      fmt::format("--matrix {}: a matrix is of two or more {}, and {} is there; leave --matrix out, or "
                  "name more of them to {}",
                  metric, kind == measure::ResultKind::kBench ? "workloads" : "histories", "one",
                  kind == measure::ResultKind::kBench ? "`tenon bench`" : "`tenon replay`"));
}

/// In one table, which people see as two.
Table every_figure(const measure::Comparison& comparison, bool all) {
  Table table = compare_figures(comparison, all, false);
  const Table by_purpose = compare_figures(comparison, all, true);
  for (const std::vector<TableCell>& row : by_purpose.rows()) table.add_row(row);
  return table;
}

ExitCode compare_verb(const CompareOptions& options) {
  const std::vector<std::vector<std::string>> sides = sides_of(options.results);
  CommandFiles files{.read = {}, .written = {options.html}};
  for (const std::vector<std::string>& side : sides) files.read.insert(files.read.end(), side.begin(), side.end());
  check_files(files);
  check_metric(options.matrix);
  const bool takes_stdout = uses_standard_output(files);
  refuse_idle_options(options, takes_stdout);
  std::vector<measure::ResultSet> sets = read_sides(sides);
  if (sets.size() == 1 && (sets[0].kind == measure::ResultKind::kRun || sets[0].kind == measure::ResultKind::kSweep))
    throw ConfigError(
        fmt::format("{} is {}: name a second one to compare it with", sets[0].path, measure::kind_name(sets[0].kind)));
  const measure::Comparison comparison = measure::compare(std::move(sets), options.filters);
  refuse_idle_matrix(options.matrix, comparison);
  const measure::GateNames names = measure::ComparisonFigures::names(comparison);
  std::vector<measure::GateExpression> gates;
  std::vector<std::vector<std::string>> trips;
  for (const std::string& text : options.gates) {
    gates.push_back(measure::parse_gate_expression(text, names));
    trips.push_back(measure::tripped(gates.back(), measure::ComparisonFigures(comparison)));
  }
  if (!takes_stdout) {
    switch (options.format) {
      case TableFormat::kJson:
        print_exactly(compare_json(comparison, options.all, gates, trips, environment_json()));
        break;
      case TableFormat::kCsv:
        print(render(every_figure(comparison, options.all || comparison.sets.size() == 1), options.format, {}));
        break;
      default:
        print(compare_text(comparison, options.all, options.matrix, options.format));
    }
  }
  if (!options.quiet) {
    for (const std::string& remark : compare_remarks(comparison)) say(remark);
  }
  if (!options.html.empty()) {
    write_file(options.html, compare_html(comparison, options.matrix));
    if (!takes_stdout) say(fmt::format("report: {}", options.html));
  }
  return say_trips(trips) ? ExitCode::kGate : ExitCode::kDone;
}

}  // namespace

void add_compare(Verb program, Outcome& outcome) {
  auto options = std::make_shared<CompareOptions>();
  const Verb verb = program.add_verb("compare", "compare results of runs, sweeps, replays or benches");
  verb.add_option("results", options->results,
                  "folders or result.json of `tenon run`; JSON of `tenon replay` and `tenon bench`; each is a side, or "
                  "several are, with vs between the sides")
      .required()
      .type_name("RESULT")
      .check([](const std::string& path) { return path.empty() ? std::string("an empty name") : std::string(); });
  verb.add_option("--filter", options->filters, "only cases with WORD in their name, or FIELD=WORD; '*' is anything")
      .type_name("WORD")
      .one_at_a_time();
  verb.add_option("--fail-if", options->gates,
                  "exit 3 when it holds: 'peak_reserved_bytes > +2%', 'b.step_ms > 1.05 * a.step_ms'")
      .type_name("EXPR")
      .one_at_a_time();
  verb.add_option("--matrix", options->matrix, "figure shown in the matrix of histories and allocators")
      .type_name("FIGURE");
  verb.add_flag("--all", options->all, "also show figures that are equal");
  verb.add_option("--html", options->html, "write one page with all of it; - is standard output").type_name("FILE");
  add_format_option(verb, options->format);
  add_quiet_option(verb, options->quiet);
  verb.footer(
      "Names:\n"
      "  a, b, …            the sides in their order; in EXPR their figures: b.step_ms\n"
      "  a1 a2 … vs b1 b2 … several results a side: a verdict on speed needs six or more, made in turn\n"
      "  FIGURE > +2%       of every later side, against the first; what cannot be judged trips\n"
      "  FIELD of --filter  trace, allocator, capacity of replays; workload, allocator of benches; keys of a sweep\n"
      "  FIGURE             as in --format json: peak_reserved_bytes, excess, ooms, step_ms, ns_per_pair …\n" +
      example("tenon compare tenon-out/old tenon-out/new --fail-if 'peak_reserved_bytes > +2%'"));
  verb.callback([options, &outcome] { outcome.exit_code = compare_verb(*options); });
}

}  // namespace tenon::cli
