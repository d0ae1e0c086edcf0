// Matching, verdicts, and what changed.
#include <tenon/measure/compare/comparison.h>
#include <tenon/measure/statistics/verdict.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tenon::measure {

namespace {

using Field = std::pair<std::string, std::string>;

constexpr double kConfidence = 0.99;

/// '*' stands for anything; a word without one may stand anywhere.
bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.find('*') == std::string_view::npos) return text.find(pattern) != std::string_view::npos;
  const std::size_t star = pattern.find('*');
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  if (pattern.find('*') == std::string_view::npos) return text.ends_with(pattern);
  for (std::size_t from = 0; from <= text.size(); ++from) {
    if (matches(text.substr(from), pattern)) return true;
  }
  return false;
}

const ResultFigure* figure_of(const ResultCase& found, const FigureInfo& info) {
  if (!found.failure.empty()) return nullptr;
  const auto figure = found.figures.find(std::string(info.key));
  return figure == found.figures.end() ? nullptr : &figure->second;
}

/// The interval of the ratio of two sets of samples that are no pairs: the shift of their logarithms.
std::optional<Interval> unpaired_ratio(const std::vector<double>& before, const std::vector<double>& after) {
  const auto logs = [](std::vector<double> values) {
    for (double& value : values) value = std::log(std::max(value, 1e-300));
    return values;
  };
  auto shift = shift_interval(logs(before), logs(after), kConfidence);
  if (shift) *shift = {std::exp(shift->low), std::exp(shift->middle), std::exp(shift->high)};
  return shift;
}

/// With a sign, and tenths; of what would read 0.0, one digit that counts: "+0.002".
std::string signed_text(double value) {
  return std::abs(value) < 0.05 ? fmt::format("{:+.1g}", value) : fmt::format("{:+.1f}", value);
}

std::string exact_verdict(const FigureInfo& info, double first, double other) {
  if (first == other) return "same";
  const bool is_better = info.better == Better::kMore ? other > first : other < first;
  const char* word = info.better == Better::kNeither ? "differs" : is_better ? "better" : "worse";
  const double difference = other - first;
  if (info.unit == FigureUnit::kShare) return fmt::format("{}: {} points", word, signed_text(100 * difference));
  if (first <= 0) {
    const bool is_bytes = info.unit == FigureUnit::kBytes && difference > 0;
    return is_bytes ? fmt::format("{}: +{}", word, format_bytes(static_cast<std::uint64_t>(difference)))
                    : fmt::format("{}: {:+g}", word, difference);
  }
  const double percent = 100 * difference / first;
  if (info.unit == FigureUnit::kNumber) return fmt::format("{}: {} %", word, signed_text(percent));
  return fmt::format("{} by {} %", word, signed_text(percent).substr(1));
}

std::vector<ChangedSetting> changed(const Comparison& comparison,
                                    std::map<std::string, std::string> ResultSet::*member) {
  std::set<std::string> keys;
  for (const ResultSet& set : comparison.sets) {
    for (const auto& [key, value] : set.*member) keys.insert(key);
  }
  std::vector<ChangedSetting> found;
  for (const std::string& key : keys) {
    ChangedSetting setting{key, {}};
    for (const ResultSet& set : comparison.sets) {
      const auto value = (set.*member).find(key);
      setting.values.push_back(value == (set.*member).end() ? std::string() : value->second);
    }
    if (!std::ranges::all_of(setting.values, [&](const std::string& value) { return value == setting.values.front(); }))
      found.push_back(std::move(setting));
  }
  return found;
}

}  // namespace

bool passes(const ResultCase& found, const std::vector<std::string>& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& filter) {
           const std::size_t equals = filter.find('=');
           const std::string key = filter.substr(0, equals);
           if (equals != std::string::npos && std::ranges::find(found.fields, key, &Field::first) != found.fields.end())
             return matches(found.field(key), filter.substr(equals + 1));
           return matches(found.name, filter);
         });
}

namespace {

/// The row of the allocator that wastes nothing, which every replay has: it is of no set in particular.
bool is_ideal(const ResultCase& found, std::string_view key) {
  return key == "allocator" && found.field(key) == kIdealAllocator;
}

/// The one value that all cases of the set have in that field; empty where there are several.
std::optional<std::string> only_value(const ResultSet& set, const std::string& key,
                                      const std::vector<std::string>& filters) {
  std::optional<std::string> only;
  for (const ResultCase& found : set.cases) {
    if (!passes(found, filters) || is_ideal(found, key)) continue;
    if (only && *only != found.field(key)) return std::nullopt;
    only = found.field(key);
  }
  return only;
}

std::vector<ChangedSetting> set_fields(const std::vector<ResultSet>& sets, const std::vector<std::string>& filters) {
  std::vector<std::string> keys;
  for (const ResultSet& set : sets) {
    for (const ResultCase& found : set.cases) {
      for (const auto& [key, value] : found.fields) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      }
    }
  }
  std::vector<ChangedSetting> fields;
  for (const std::string& key : keys) {
    ChangedSetting field{key, {}};
    for (const ResultSet& set : sets) {
      if (const auto value = only_value(set, key, filters)) field.values.push_back(*value);
    }
    const bool is_of_sets = field.values.size() == sets.size() && std::ranges::count(field.values, field.values[0]) !=
                                                                      static_cast<std::ptrdiff_t>(sets.size());
    if (is_of_sets) fields.push_back(std::move(field));
  }
  return fields;
}

std::string name_without(const std::vector<ChangedSetting>& fields, const ResultCase& found) {
  if (fields.empty()) return found.name;
  std::string name;
  for (const auto& [key, value] : found.fields) {
    const bool is_left_out = std::ranges::find(fields, key, &ChangedSetting::key) != fields.end();
    if (value.empty() || (is_left_out && !is_ideal(found, key))) continue;
    name += (name.empty() ? "" : ", ") + value;
  }
  return name.empty() ? "all" : name;
}

}  // namespace

Comparison compare(std::vector<ResultSet> sets, const std::vector<std::string>& filters) {
  Comparison comparison{std::move(sets), {}, {}};
  const ResultSet& first = comparison.sets.front();
  for (std::size_t s = 1; s < comparison.sets.size(); ++s) {
    if (comparison.sets[s].kind == first.kind) continue;
    throw ConfigError(fmt::format("{} is {}, and {} is {}: compare results of one kind", first.path,
                                  kind_name(first.kind), comparison.sets[s].path, kind_name(comparison.sets[s].kind)));
  }
  comparison.set_fields = set_fields(comparison.sets, filters);
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    for (const ResultCase& found : comparison.sets[s].cases) {
      if (!passes(found, filters)) continue;
      const std::string name = name_without(comparison.set_fields, found);
      auto place = std::ranges::find(comparison.cases, name, &ComparedCase::name);
      if (place == comparison.cases.end()) {
        comparison.cases.push_back({name, std::vector<const ResultCase*>(comparison.sets.size())});
        place = std::prev(comparison.cases.end());
      }
      place->of_set[s] = &found;
    }
  }
  if (comparison.cases.empty())
    throw ConfigError(fmt::format("no case passes --filter {}; there is \"{}\", for example",
                                  fmt::join(filters, " --filter "), first.cases.front().name));
  return comparison;
}

namespace {

using Kind = FigureVerdict::Kind;

/// Of a figure that another run would give another value.
FigureVerdict measured_verdict(const ResultFigure& then, const ResultFigure& now) {
  if (const auto ratio = unpaired_ratio(then.samples, now.samples))
    return {verdict_on(ratio) == Verdict::kNoEvidence ? Kind::kNoEvidence : Kind::kDifferent, speed_sentence(ratio)};
  const std::string change = then.value > 0 ? fmt::format(" ({:+.1f} %)", 100 * (now.value / then.value - 1)) : "";
  const auto counted = [](const ResultFigure& figure) { return std::max<std::size_t>(1, figure.samples.size()); };
  if (counted(then) == 1 && counted(now) == 1) return {Kind::kTooFew, "no verdict: one measurement each" + change};
  return {Kind::kTooFew,
          fmt::format("no verdict: {} against {} measurements are too few{}", counted(then), counted(now), change)};
}

/// Why a measured figure says nothing about speed; empty where it does.
std::string why_shared(const ResultCase& found) {
  return found.cells_at_a_time < 2 ? "" : fmt::format("its sweep ran up to {} cells at a time", found.cells_at_a_time);
}

}  // namespace

FigureVerdict figure_verdict(const FigureInfo& info, const ResultCase& first, const ResultCase& other) {
  const ResultFigure* const then = figure_of(first, info);
  const ResultFigure* const now = figure_of(other, info);
  if (then == nullptr || now == nullptr) {
    const ResultCase& failed = first.failure.empty() ? other : first;
    return failed.failure.empty() ? FigureVerdict{} : FigureVerdict{Kind::kFailed, "no verdict: " + failed.mark};
  }
  if (info.needs_completion && (!first.ran_out.empty() || !other.ran_out.empty())) {
    if (first.ran_out == other.ran_out && then->value == now->value) return {Kind::kSame, "same"};
    return {Kind::kNotComparable,
            other.ran_out.empty() ? "not comparable: the first ran out" : "not comparable: " + other.ran_out};
  }
  if (info.is_measured) {
    const std::string why = why_shared(first).empty() ? why_shared(other) : why_shared(first);
    return why.empty() ? measured_verdict(*then, *now) : FigureVerdict{Kind::kShared, "no verdict: shared machine"};
  }
  return {then->value == now->value ? Kind::kSame : Kind::kDifferent, exact_verdict(info, then->value, now->value)};
}

bool is_same_figure(const FigureInfo& info, const ComparedCase& found) {
  const ResultFigure* first = nullptr;
  for (const ResultCase* one : found.of_set) {
    const ResultFigure* const figure = one == nullptr ? nullptr : figure_of(*one, info);
    if (figure == nullptr) return false;
    if (first == nullptr) first = figure;
    if (figure->value != first->value) return false;
  }
  return first != nullptr;
}

std::vector<std::string> unjudged(const Comparison& comparison, const GateExpression& gate) {
  const FigureInfo& info = *find_figure(gate.left.metric);
  const bool is_relative = gate.right || gate.value.is_relative;
  const std::size_t base = gate.right ? gate.right->subject.value_or(0) : 0;
  std::vector<std::string> sentences;
  bool is_judged = false;
  for (const ComparedCase& found : comparison.cases) {
    for (std::size_t s = 0; s < found.of_set.size(); ++s) {
      if (is_relative && s == base) continue;
      if (gate.left.subject && *gate.left.subject != s) continue;
      const ResultCase* const one = found.of_set[s];
      const ResultCase* const first = is_relative ? found.of_set[base] : one;
      if (one == nullptr || first == nullptr) continue;
      std::string why = one->failure;
      if (why.empty() && !first->failure.empty())
        why = fmt::format("{}: {}", comparison.sets[base].path, first->failure);
      if (why.empty() && is_relative && info.is_measured && s != base)
        why = why_shared(*first).empty() ? why_shared(*one) : why_shared(*first);
      if (why.empty() && info.needs_completion && !(is_relative && first->ran_out == one->ran_out)) why = one->ran_out;
      if (!why.empty()) {
        sentences.push_back(fmt::format("{}, {}: {} cannot be judged, {}: tripped '{}'", found.name,
                                        comparison.sets[s].path, info.key, why, gate.text));
      } else if (figure_of(*one, info) != nullptr && figure_of(*first, info) != nullptr) {
        is_judged = true;
      }
    }
  }
  if (!is_judged && sentences.empty())
    sentences.push_back(fmt::format("no case has {} in every result asked for: tripped '{}'", info.key, gate.text));
  return sentences;
}

std::vector<ChangedSetting> changed_settings(const Comparison& comparison) {
  std::vector<ChangedSetting> found = comparison.set_fields;
  for (ChangedSetting& setting : changed(comparison, &ResultSet::settings)) {
    if (std::ranges::find(found, setting.key, &ChangedSetting::key) == found.end()) found.push_back(std::move(setting));
  }
  // Which plugins are used follows from the settings; here is which of them are other builds.
  for (ChangedSetting& plugin : changed(comparison, &ResultSet::plugins)) {
    std::set<std::string> builds(plugin.values.begin(), plugin.values.end());
    builds.erase("");
    if (builds.size() > 1) found.push_back(std::move(plugin));
  }
  return found;
}
std::vector<ChangedSetting> changed_environment(const Comparison& comparison) {
  return changed(comparison, &ResultSet::environment);
}

GateNames ComparisonFigures::names(const Comparison& comparison) {
  GateNames names;
  for (const ResultSet& set : comparison.sets) names.subjects.push_back(set.path);
  for (const FigureInfo& info : known_figures()) {
    const bool is_there = std::ranges::any_of(comparison.cases, [&](const ComparedCase& found) {
      return std::ranges::any_of(found.of_set, [&](const ResultCase* one) {
        return one != nullptr && one->figures.contains(std::string(info.key));
      });
    });
    if (is_there) names.metrics.emplace_back(info.key);
  }
  return names;
}

std::optional<Interval> ComparisonFigures::figure(std::size_t which, std::size_t subject,
                                                  const std::string& metric) const {
  const ResultCase* const found = comparison_.cases[which].of_set[subject];
  const FigureInfo* const info = find_figure(metric);
  const ResultFigure* const figure = found == nullptr || info == nullptr ? nullptr : figure_of(*found, *info);
  if (figure == nullptr) return std::nullopt;
  if (figure->samples.size() >= samples_for(kConfidence)) return median_interval(figure->samples, kConfidence);
  if (figure->samples.empty()) return Interval{figure->value, figure->value, figure->value};
  const auto [least, most] = std::ranges::minmax(figure->samples);  // too few for an interval: all that was seen
  return Interval{std::min(least, figure->value), figure->value, std::max(most, figure->value)};
}

}  // namespace tenon::measure
