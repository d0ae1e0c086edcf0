// Rows, sentences and JSON of a bench.
#include <tenon/core/text/counted.h>
#include <tenon/replay/results/result_document.h>
#include <tenon/report/measure/bench_report.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon {

namespace {

using measure::BenchCell;
using measure::BenchResult;
using measure::Interval;
using Json = nlohmann::ordered_json;

constexpr char kNs[] = "ns_per_pair";

TableCell real(double value, int digits) { return Real{value, digits}; }
TableCell ns_cell(double ns) { return ns > 0 ? real(ns, ns < 100 ? 1 : 0) : TableCell(); }

/// The word of JSON.
const char* word_of(const std::optional<Interval>& ratio) {
  switch (measure::verdict_on(ratio)) {
    case measure::Verdict::kLess:
      return "faster";
    case measure::Verdict::kMore:
      return "slower";
    case measure::Verdict::kNoEvidence:
      return "no evidence";
    case measure::Verdict::kTooFew:
      break;
  }
  return "too few rounds";
}

Json interval_json(const std::optional<Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

double harness_ns(const BenchResult& result, std::size_t workload) { return result.cells[workload].back().ns(); }

Json row_json(const BenchResult& result, std::size_t workload, std::size_t subject) {
  const BenchCell& cell = result.cells[workload][subject];
  const bool has_figures = cell.failure.empty() && !cell.round_ns.empty();
  const bool is_compared = subject != 0 && subject < result.allocators() && !cell.round_ratios.empty();
  Json json;
  json["workload"] = result.workloads[workload];
  json["allocator"] = result.subjects[subject].name;
  json[kNs] = has_figures ? Json(cell.ns()) : Json(nullptr);
  json["ns_per_pair_interval"] = has_figures ? interval_json(cell.ns_interval()) : Json(nullptr);
  json["round_ns"] = cell.round_ns;
  const std::optional<Interval> ratio = is_compared ? result.ratio(workload, subject, 0) : std::nullopt;
  json["ratio"] = is_compared ? Json(measure::median(cell.round_ratios)) : Json(nullptr);
  json["ratio_interval"] = interval_json(ratio);
  json["round_ratios"] = cell.round_ratios;
  json["verdict"] = is_compared ? Json(word_of(ratio)) : Json(nullptr);
  json["failure"] = cell.failure.empty() ? Json(nullptr) : Json(cell.failure);
  return json;
}

void add_overall(Table& table, const BenchResult& result) {
  for (std::size_t s = 1; result.workloads.size() > 1 && s < result.allocators(); ++s) {
    const std::vector<double> ratios = result.ratios(result.workloads.size(), s, 0);
    if (ratios.empty()) continue;
    const auto ratio = result.ratio(result.workloads.size(), s, 0);
    table.add_row({"all, geometric mean", result.subjects[s].name, TableCell(), TableCell(), TableCell(), TableCell(),
                   real(measure::median(ratios), 3), ratio ? real(ratio->low, 3) : TableCell(),
                   ratio ? real(ratio->high, 3) : TableCell(), measure::speed_sentence(ratio)});
  }
}

}  // namespace

Table bench_table(const BenchResult& result) {
  const std::string against = "against " + result.subjects.front().name;
  Table table({{"workload", "workload"},
               {.key = "allocator", .title = "allocator", .is_name = true},
               {kNs, "ns/pair", true, 4},
               {"ns_per_pair_low", "from", true, 1},
               {"ns_per_pair_high", "to", true, 1},
               {"harness_ns", "harness"},
               {"ratio", "ratio", true, 2},
               {"ratio_low", "ratio from", false},
               {"ratio_high", "ratio to", false},
               {"verdict", against, true, 3}});
  for (std::size_t w = 0; w < result.workloads.size(); ++w) {
    for (std::size_t s = 0; s < result.allocators(); ++s) {
      const BenchCell& cell = result.cells[w][s];
      std::vector<TableCell> row = {result.workloads[w], result.subjects[s].name};
      if (!cell.failure.empty() || cell.round_ns.empty()) {
        row.resize(9);
        row.emplace_back(cell.failure.empty() ? "not measured" : "failed");
        table.add_row(std::move(row));
        continue;
      }
      const auto interval = cell.ns_interval();
      row.insert(row.end(), {ns_cell(cell.ns()), interval ? ns_cell(interval->low) : TableCell(),
                             interval ? ns_cell(interval->high) : TableCell(), ns_cell(harness_ns(result, w))});
      if (cell.round_ratios.empty()) {
        row.resize(10);
      } else {
        const auto ratio = result.ratio(w, s, 0);
        row.insert(row.end(), {real(measure::median(cell.round_ratios), 3), ratio ? real(ratio->low, 3) : TableCell(),
                               ratio ? real(ratio->high, 3) : TableCell(), measure::speed_sentence(ratio)});
      }
      table.add_row(std::move(row));
    }
  }
  add_overall(table, result);
  return table;
}

std::string bench_method(const BenchResult& result, const measure::BenchOptions& options) {
  std::string text = !result.is_interrupted
                         ? std::string()
                         : fmt::format("Interrupted: {} of {} rounds of every workload were measured.\n", result.rounds,
                                       options.rounds);
  if (result.rounds == 0) return text;
  text += fmt::format(
      "Medians of {}, nanoseconds per pair of allocate and free, statistics on, with 95 % intervals where "
      "there "
      "are enough rounds; the harness is what an allocator that does nothing takes. Seed {}.\n",
      counted(result.rounds, "round"), options.seed);
  if (result.allocators() < 2) return text;
  const std::size_t needed = measure::samples_for(result.confidence);
  if (needed > static_cast<std::size_t>(result.rounds))
    return text + fmt::format("{} round{} too few for a verdict; it takes {}.\n", result.rounds,
                              result.rounds == 1 ? " is" : "s are", needed);
  text += fmt::format(
      "Verdicts: the interval of the median ratio over paired rounds (order statistics), {:g} % for all of them "
      "together.\n",
      100 * options.confidence);
  return text;
}

std::vector<std::string> bench_failures(const BenchResult& result) {
  std::vector<std::string> sentences;
  for (std::size_t s = 0; s < result.subjects.size(); ++s) {
    for (std::size_t w = 0; w < result.workloads.size(); ++w) {
      const std::string& failure = result.cells[w][s].failure;
      if (failure.empty()) continue;
      const bool is_all = failure.starts_with("disqualified");
      sentences.push_back(is_all ? fmt::format("{} is {}", result.subjects[s].name, failure)
                                 : fmt::format("{} under {}: {}{}", result.subjects[s].name, result.workloads[w],
                                               failure, result.cells[w][s].is_too_slow ? ": raise --deadline" : ""));
      if (is_all) break;
    }
  }
  return sentences;
}

std::string bench_json(const BenchResult& result, const measure::BenchOptions& options, const measure::HostNoise& noise,
                       const std::vector<measure::GateExpression>& gates,
                       const std::vector<std::vector<std::string>>& trips, const std::string& environment_json) {
  Json json = replay::begin_result_document<Json>(environment_json, "bench");
  json["host"] = {{"load_average", noise.load},
                  {"cores", noise.cores},
                  {"frequency_governor", noise.governor.empty() ? Json(nullptr) : Json(noise.governor)},
                  {"stolen_share", noise.stolen_share},
                  {"harness_spread", noise.harness_spread},
                  {"warnings", noise.warnings()}};
  json["interrupted"] = result.is_interrupted;
  json["method"] = {{"rounds", result.rounds},
                    {"slices", options.slices},
                    {"slice_ns", options.slice_ns},
                    {"seed", options.seed},
                    {"confidence", options.confidence},
                    {"confidence_of_each", result.confidence},
                    {"interval", "order statistics of the median ratio of paired rounds"}};
  for (std::size_t s = 0; s < result.allocators(); ++s) {
    const measure::BenchSubject& subject = result.subjects[s];
    json["allocators"].push_back(
        {{"name", subject.name}, {"spec", subject.spec}, {"plugin", Json::parse(subject.plugin_json)}});
  }
  json["rows"] = Json::array();
  for (std::size_t w = 0; w < result.workloads.size(); ++w) {
    for (std::size_t s = 0; s < result.subjects.size(); ++s) json["rows"].push_back(row_json(result, w, s));
  }
  json["all"] = Json::array();
  for (std::size_t s = 1; result.workloads.size() > 1 && s < result.allocators(); ++s) {
    const std::vector<double> ratios = result.ratios(result.workloads.size(), s, 0);
    if (ratios.empty()) continue;
    const auto ratio = result.ratio(result.workloads.size(), s, 0);
    json["all"].push_back({{"allocator", result.subjects[s].name},
                           {"ratio", measure::median(ratios)},
                           {"ratio_interval", interval_json(ratio)},
                           {"verdict", word_of(ratio)}});
  }
  for (std::size_t i = 0; i < trips.size(); ++i)  // of an interrupted bench none was judged
    json["gates"].push_back({{"expression", gates[i].text}, {"tripped", !trips[i].empty()}, {"because", trips[i]}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

measure::GateNames BenchFigures::names(const std::vector<std::string>& subjects) {
  return {.subjects = subjects, .metrics = {kNs}};
}

std::string BenchFigures::why_unjudged(const measure::GateQuestion& question) const {
  const auto& cells = result_.cells[question.which];
  for (const std::size_t subject : {question.subject, question.against.value_or(question.subject)}) {
    if (!cells[subject].failure.empty())
      return fmt::format("{} has no figures: {}", subject_name(subject), cells[subject].failure);
  }
  const std::size_t rounds = cells[question.subject].round_ns.size();
  const std::size_t needed = measure::samples_for(result_.confidence);
  return rounds >= needed ? ""
                          : fmt::format("{} round{} too few, it takes {}: --rounds {}", rounds,
                                        rounds == 1 ? " is" : "s are", needed, needed);
}

std::optional<Interval> BenchFigures::figure(std::size_t which, std::size_t subject, const std::string&) const {
  const BenchCell& cell = result_.cells[which][subject];
  return cell.round_ns.empty() ? std::nullopt : measure::median_interval(cell.round_ns, result_.confidence);
}

std::optional<Interval> BenchFigures::ratio(std::size_t which, const measure::GateOperand&, std::size_t left_subject,
                                            const measure::GateOperand&, std::size_t right_subject) const {
  return result_.ratio(which, left_subject, right_subject);
}

}  // namespace tenon
