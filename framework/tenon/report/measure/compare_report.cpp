// Tables, sentences and JSON of a comparison.
#include <tenon/replay/results/result_document.h>
#include <tenon/report/measure/compare_report.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tenon {

namespace {

using measure::ChangedSetting;
using measure::ComparedCase;
using measure::Comparison;
using measure::FigureInfo;
using measure::FigureUnit;
using measure::FigureVerdict;
using measure::ResultCase;
using measure::ResultKind;
using Json = nlohmann::ordered_json;

// On a narrow screen the values of b and of what follows go first, then those of a, then the verdicts.
constexpr int kImportanceOfFirstValue = 1, kImportanceOfVerdict = 2;

std::string letter(std::size_t set) { return std::string(1, static_cast<char>('a' + set % 26)); }

/// "a runs/old": the letter is what gates call it.
std::string title_of(const Comparison& comparison, std::size_t set) {
  return letter(set) + " " + comparison.sets[set].path;
}

bool is_purpose(const FigureInfo& info) {
  static const std::vector<std::string_view> kOthers = {"peak_requested_bytes", "peak_allocated_bytes",
                                                        "peak_active_bytes", "peak_reserved_bytes"};
  return info.key.starts_with("peak_") && info.key.ends_with("_bytes") &&
         std::ranges::find(kOthers, info.key) == kOthers.end();
}

TableCell cell_of(const FigureInfo& info, const ResultCase* found) {
  if (found == nullptr) return {};
  if (!found->failure.empty()) return found->mark;
  const auto figure = found->figures.find(std::string(info.key));
  if (figure == found->figures.end()) return {};
  if (info.needs_completion() && info.unit == FigureUnit::kShare && !found->ran_out.empty()) return found->ran_out;
  const double value = figure->second.value;
  switch (info.unit) {
    case FigureUnit::kBytes:
      return Bytes{static_cast<std::int64_t>(value)};
    case FigureUnit::kShare:
      return Ratio{value};
    case FigureUnit::kMilliseconds:
      return Real{value, 2};
    case FigureUnit::kSeconds:
      return Real{value, value < 1 ? 4 : 1};
    case FigureUnit::kNanoseconds:
      return Real{value, 1};
    case FigureUnit::kNumber:
      break;
  }
  if (value == static_cast<double>(static_cast<std::int64_t>(value))) return static_cast<std::int64_t>(value);
  return Real{value, 4};
}

bool has_figure(const FigureInfo& info, const ComparedCase& found) {
  return std::ranges::any_of(found.of_set, [&](const ResultCase* one) {
    return one != nullptr && one->figures.contains(std::string(info.key));
  });
}

FigureVerdict verdict_of(const FigureInfo& info, const ComparedCase& found, std::size_t set) {
  const ResultCase* const first = found.of_set[0];
  const ResultCase* const other = found.of_set[set];
  return first == nullptr || other == nullptr ? FigureVerdict{} : figure_verdict(info, *first, *other);
}

/// Whether a figure of any case has such a verdict.
bool has_verdict(const Comparison& comparison, std::string_view figure, FigureVerdict::Kind kind) {
  const FigureInfo& info = *measure::find_figure(figure);
  return std::ranges::any_of(comparison.cases, [&](const ComparedCase& found) {
    for (std::size_t s = 1; s < found.of_set.size(); ++s)
      if (verdict_of(info, found, s).kind == kind) return true;
    return false;
  });
}

std::string default_metric(const Comparison& comparison, const std::string& metric) {
  if (!metric.empty()) return metric;
  return comparison.sets.front().kind == ResultKind::kBench ? "ns_per_pair" : "peak_reserved_bytes";
}

void add_changes(Table& table, const std::vector<ChangedSetting>& changes) {
  for (const ChangedSetting& change : changes) {
    std::vector<TableCell> row = {change.key};
    for (const std::string& value : change.values) row.push_back(value.empty() ? TableCell() : TableCell(value));
    table.add_row(std::move(row));
  }
}

Json trips_json(const std::vector<measure::GateExpression>& gates, const std::vector<std::vector<std::string>>& trips) {
  Json json = Json::array();
  for (std::size_t i = 0; i < gates.size(); ++i)
    json.push_back({{"expression", gates[i].text}, {"tripped", !trips[i].empty()}, {"because", trips[i]}});
  return json;
}

}  // namespace

Table compare_settings(const Comparison& comparison) {
  std::vector<Column> columns = {{"setting", "what differs"}};
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) columns.push_back({letter(s), title_of(comparison, s)});
  Table table(std::move(columns));
  add_changes(table, changed_settings(comparison));
  add_changes(table, changed_environment(comparison));
  return table;
}

Table compare_figures(const Comparison& comparison, bool all, bool by_purpose) {
  const std::size_t sets = comparison.sets.size();
  std::vector<std::vector<TableCell>> rows;
  std::set<std::string> cases;
  for (const ComparedCase& found : comparison.cases) {
    if (!all && std::ranges::find(found.of_set, nullptr) != found.of_set.end()) continue;  // a remark says so
    for (const FigureInfo& info : measure::known_figures()) {
      if (is_purpose(info) != by_purpose || !has_figure(info, found)) continue;
      const bool is_percentile = info.key.find('.') != std::string_view::npos;
      if (!all && sets > 1 && (is_percentile || is_same_figure(info, found))) continue;
      std::vector<TableCell> row = {found.name, std::string(info.title)};
      for (const ResultCase* one : found.of_set) row.push_back(cell_of(info, one));
      for (std::size_t s = 1; s < sets; ++s) {
        const std::string verdict = verdict_of(info, found, s).text;
        row.push_back(verdict.empty() ? TableCell() : TableCell(verdict));
      }
      rows.push_back(std::move(row));
      cases.insert(found.name);
    }
  }
  std::vector<Column> columns = {{"case", "case", cases.size() > 1},  // of one case, the heading says its name
                                 {.key = "figure", .title = by_purpose ? "memory for" : "figure", .is_name = true}};
  for (std::size_t s = 0; s < sets; ++s)
    columns.push_back({letter(s), title_of(comparison, s), true, s == 0 ? kImportanceOfFirstValue : 0});
  for (std::size_t s = 1; s < sets; ++s)
    columns.push_back(
        {letter(s) + "_verdict", sets == 2 ? "b against a" : letter(s) + " against a", true, kImportanceOfVerdict});
  Table table(std::move(columns));
  for (std::vector<TableCell>& row : rows) table.add_row(std::move(row));
  return table;
}

std::string figures_title(const Comparison& comparison, const Table& figures, bool by_purpose) {
  const std::string title = by_purpose ? "Memory by purpose, at its peaks" : "Figures";
  const bool names_case =
      figures.columns()[0].for_people || figures.empty() || comparison.sets[0].kind == ResultKind::kRun;
  return names_case ? title : title + " of " + show(figures.rows()[0][0]);
}

namespace {

/// What the verdicts on speed rest on, or what they lack.
std::vector<std::string> speed_remarks(const Comparison& comparison) {
  using Kind = FigureVerdict::Kind;
  std::vector<std::string> remarks;
  const ResultKind kind = comparison.sets.front().kind;
  const bool is_run = kind == ResultKind::kRun || kind == ResultKind::kSweep;
  const char* speed = is_run ? "step_ms" : kind == ResultKind::kBench ? "ns_per_pair" : "seconds";
  if (is_run && (has_verdict(comparison, speed, Kind::kTooFew) || has_verdict(comparison, "seconds", Kind::kTooFew)))
    remarks.push_back(
        "a machine is slower at one time than at another, so a verdict on speed needs several runs a side: repeat both "
        "in turn, six times or more, each into a folder of its own, and compare the sides:\n  tenon compare a-* vs "
        "b-*");
  if (!is_run && has_verdict(comparison, speed, Kind::kTooFew))
    remarks.push_back(fmt::format(
        "a machine is slower at one time than at another, which nothing within one file shows, so a verdict on speed "
        "needs both in one bench, where they take turns:\n  tenon bench OLD NEW{}\nor six files or more a side, made "
        "in turn:\n  tenon compare a-* vs b-*",
        kind == ResultKind::kReplay ? " --history TRACE" : ""));
  if (has_verdict(comparison, "step_ms", Kind::kShared))
    remarks.push_back(
        "cells of these sweeps ran beside each other and slowed one another: no verdict on speed; run the sweep with "
        "-j 1 for one");
  if (has_verdict(comparison, speed, Kind::kDifferent))
    remarks.push_back(
        fmt::format("these times are of several {} a side: had all of one side been made before the other, a machine "
                    "that was busier meanwhile would show as slower; let them take turns",
                    is_run ? "runs" : "files"));
  return remarks;
}

// What other orders of additions, kernels or numbers of ranks make of float32: it begins in the last bits and grows.
constexpr double kRoundingAtFirst = 1e-5, kRoundingInTheEnd = 1e-3;

/// What the losses of one are to those of another, step by step: "are other than those of a".
std::string against_a(const ResultCase& one, const ResultCase& a) {
  if (one.losses_hash == a.losses_hash && one.first_step == a.first_step)
    return "are equal to the last bit to those of a";
  // Steps are counted from 0 here. One of the runs may have begun with what another one had saved.
  const std::size_t from = std::max(one.first_step, a.first_step), end_of_one = one.first_step + one.losses.size(),
                    end_of_a = a.first_step + a.losses.size(), to = std::min(end_of_one, end_of_a);
  if (!one.losses.empty() && !a.losses.empty() && from >= to) return "are of other steps than those of a";
  double most = 0, first = 0;
  std::size_t at = 0;
  for (std::size_t step = from; step < to; ++step) {
    const double of_one = one.losses[step - one.first_step], of_a = a.losses[step - a.first_step];
    const double scale = std::max(std::abs(of_one), std::abs(of_a));
    const double apart = scale == 0 ? 0 : std::abs(of_one - of_a) / scale;
    if (step == from) first = apart;
    if (!(apart <= most)) at = step, most = apart;
    if (std::isnan(most)) break;
  }
  if (std::isnan(most)) return fmt::format("are other than those of a: that of step {} is not finite", at + 1);
  const bool are_the_same = one.first_step == a.first_step && end_of_one == end_of_a;
  if (most == 0 && (are_the_same || from >= to)) return "are other than those of a";
  const std::string of = are_the_same ? ""
                         : from == 0  ? fmt::format(" in the first {} steps", to)
                                      : fmt::format(" in steps {} to {}", from + 1, to);
  if (most == 0) return fmt::format("are equal to those of a{}", of);
  if (first <= kRoundingAtFirst && most <= kRoundingInTheEnd)
    return fmt::format("are those of a but for rounding: at most {:.1e} of a loss apart{}, at step {}", most, of,
                       at + 1);
  return fmt::format("are other than those of a: up to {:.2g} % apart{}, at step {}", 100 * most, of, at + 1);
}

}  // namespace

std::vector<std::string> compare_remarks(const Comparison& comparison) {
  std::vector<std::string> remarks;
  if (comparison.sets.size() < 2) return remarks;
  std::size_t same = 0;
  for (const ComparedCase& found : comparison.cases) {
    for (const FigureInfo& info : measure::known_figures()) same += is_same_figure(info, found) ? 1 : 0;
    for (std::size_t s = 0; s < found.of_set.size(); ++s) {
      const ResultCase* const one = found.of_set[s];
      if (one == nullptr) {
        remarks.push_back(fmt::format("{} is not in {}", found.name, title_of(comparison, s)));
      } else if (!one->failure.empty()) {
        remarks.push_back(
            fmt::format("{} of {}: {}; no verdict on it", found.name, title_of(comparison, s), one->failure));
      } else if (!one->ran_out.empty()) {
        remarks.push_back(
            fmt::format("{} of {} ran out of memory: {}", found.name, title_of(comparison, s), one->ran_out));
      }
      if (one != nullptr && !one->losses_hash.empty() && !one->figures.contains("final_loss"))
        remarks.push_back(fmt::format("{} of {}: its last loss is not finite", found.name, title_of(comparison, s)));
      if (s == 0 || one == nullptr || found.of_set[0] == nullptr || one->losses_hash.empty()) continue;
      if (!one->failure.empty() || !found.of_set[0]->failure.empty()) continue;
      remarks.push_back(
          fmt::format("{}: the losses of {} {}", found.name, letter(s), against_a(*one, *found.of_set[0])));
    }
  }
  for (std::size_t s = 0; s < comparison.sets.size(); ++s)
    for (const std::string& warning : comparison.sets[s].noise)
      remarks.push_back(fmt::format("times of {}: a noisy machine: {}", letter(s), warning));
  if (std::ranges::any_of(measure::known_figures(), [&](const FigureInfo& info) {
        return has_verdict(comparison, info.key, FigureVerdict::Kind::kResumed);
      }))
    remarks.push_back(
        "a run that was resumed took its memory from the device once more, which its device calls count: no verdict on "
        "them");
  for (std::string& remark : speed_remarks(comparison)) remarks.push_back(std::move(remark));
  const bool is_any_compared = std::ranges::any_of(comparison.cases, [](const ComparedCase& found) {
    return std::ranges::all_of(found.of_set,
                               [](const ResultCase* one) { return one != nullptr && one->failure.empty(); });
  });
  if (is_any_compared)
    remarks.push_back(
        fmt::format("{} figure{} the same in all (--all shows everything)", same, same == 1 ? " is" : "s are"));
  return remarks;
}

/// What is 1 to the last digit shown may differ all the same. The base, which is 1 by itself, stays a number.
static TableCell ratio_cell(const std::optional<double>& ratio, bool is_base) {
  if (!ratio) return {};
  return *ratio == 1 && !is_base ? TableCell("equal") : TableCell(Real{*ratio, 3});
}

std::string matrix_title(const Comparison& comparison, std::size_t set, const std::string& metric) {
  const FigureInfo* const info = measure::find_figure(default_metric(comparison, metric));
  const std::string title = info == nullptr ? metric : std::string(info->title);
  if (set == 0) return fmt::format("{}, over that of the first allocator", title);
  return fmt::format("{} of {}, over that of {}", title, title_of(comparison, set), title_of(comparison, 0));
}

Table compare_matrix(const Comparison& comparison, std::size_t set, const std::string& metric) {
  const auto matrix = figure_matrix(comparison, set, default_metric(comparison, metric));
  if (!matrix) return Table(std::vector<Column>());
  std::vector<Column> columns = {
      {"history", comparison.sets.front().kind == ResultKind::kBench ? "workload" : "history"}};
  for (const std::string& column : matrix->columns) columns.push_back({column, column});
  Table table(std::move(columns));
  for (std::size_t r = 0; r < matrix->rows.size(); ++r) {
    std::vector<TableCell> row = {matrix->rows[r]};
    for (std::size_t c = 0; c < matrix->columns.size(); ++c) {
      const std::string& note = matrix->notes[r][c];
      const std::optional<double>& ratio = matrix->ratios[r][c];
      row.push_back(!note.empty() ? TableCell(note) : ratio_cell(ratio, set == 0 && c == 0));
    }
    table.add_row(std::move(row));
  }
  const std::string of = matrix->mean_rows == matrix->rows.size() ? "" : fmt::format(" of {}", matrix->mean_rows);
  std::vector<TableCell> means = {"geometric mean" + of};
  for (const std::optional<double>& mean : matrix->means)
    means.push_back(ratio_cell(mean, set == 0 && means.size() == 1));
  table.add_row(std::move(means));
  return table;
}

std::string compare_text(const Comparison& comparison, bool all, const std::string& metric, TableFormat format) {
  std::string text;
  const auto add = [&](const std::string& title, const Table& table) {
    if (table.empty()) return;
    const std::string heading = format == TableFormat::kMarkdown ? "### " + title + "\n\n" : title + "\n\n";
    text += (text.empty() ? "" : "\n") + heading + render(table, format, {});
  };
  add("Settings and machines", compare_settings(comparison));
  // Of one file its own verb has shown the figures: where there is a matrix, that is what is asked for.
  const bool is_alone = comparison.sets.size() == 1;
  if (all || !is_alone || compare_matrix(comparison, 0, metric).empty()) {
    for (const bool by_purpose : {false, true}) {
      const Table figures = compare_figures(comparison, all || is_alone, by_purpose);
      add(figures_title(comparison, figures, by_purpose), figures);
    }
  }
  for (std::size_t s = 0; s < comparison.sets.size(); ++s)
    add(matrix_title(comparison, s, metric), compare_matrix(comparison, s, metric));
  return text;
}

std::string compare_json(const Comparison& comparison, bool all, const std::vector<measure::GateExpression>& gates,
                         const std::vector<std::vector<std::string>>& trips, const std::string& environment_json) {
  Json json = replay::begin_result_document<Json>(environment_json, "compare");
  json["compared"] = measure::kind_name(comparison.sets.front().kind).substr(2);
  for (const measure::ResultSet& set : comparison.sets) {
    json["sets"].push_back(set.path);
    json["results"].push_back(set.results.empty() ? std::vector<std::string>{set.path} : set.results);
  }
  json["changed"] = Json::parse(compare_settings(comparison).json_rows());
  json["rows"] = Json::array();
  for (const ComparedCase& found : comparison.cases) {
    for (const FigureInfo& info : measure::known_figures()) {
      if (!has_figure(info, found) || (!all && comparison.sets.size() > 1 && is_same_figure(info, found))) continue;
      Json row = {{"case", found.name}, {"figure", info.key}, {"values", Json::array()}, {"verdicts", Json::array()}};
      for (std::size_t s = 0; s < found.of_set.size(); ++s) {
        const ResultCase* const one = found.of_set[s];
        const bool is_there = one != nullptr && one->figures.contains(std::string(info.key));
        row["values"].push_back(is_there ? Json(one->figures.at(std::string(info.key)).value) : Json(nullptr));
        const std::string verdict = s == 0 ? std::string() : verdict_of(info, found, s).text;
        row["verdicts"].push_back(verdict.empty() ? Json(nullptr) : Json(verdict));
      }
      json["rows"].push_back(std::move(row));
    }
  }
  json["remarks"] = compare_remarks(comparison);
  if (!gates.empty()) json["gates"] = trips_json(gates, trips);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tenon
