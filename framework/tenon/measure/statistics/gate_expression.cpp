// Parsing and judging gates over several subjects.
#include <tenon/measure/statistics/gate_expression.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/trimmed.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace tenon::measure {

namespace {

using replay::Gate;

std::optional<std::size_t> subject_of(const std::string& text, const GateNames& names) {
  const auto found = std::ranges::find(names.subjects, text);
  if (found != names.subjects.end()) return static_cast<std::size_t>(found - names.subjects.begin());
  if (text.size() == 1 && text[0] >= 'a' && static_cast<std::size_t>(text[0] - 'a') < names.subjects.size())
    return static_cast<std::size_t>(text[0] - 'a');
  return std::nullopt;
}

/// "b", "caching.ns_per_pair", "ns_per_pair"; empty when it names nothing.
std::optional<GateOperand> operand_of(const std::string& text, const GateNames& names) {
  if (const auto subject = subject_of(text, names)) return GateOperand{subject, names.metrics.front()};
  if (std::ranges::find(names.metrics, text) != names.metrics.end()) return GateOperand{std::nullopt, text};
  for (const std::string& metric : names.metrics) {
    if (!text.ends_with("." + metric)) continue;
    if (const auto subject = subject_of(text.substr(0, text.size() - metric.size() - 1), names))
      return GateOperand{subject, metric};
  }
  return std::nullopt;
}

/// "1.05 * a" too.
std::optional<GateOperand> product_of(const std::string& text, const GateNames& names) {
  if (auto operand = operand_of(text, names)) return operand;
  char* end = nullptr;
  const double factor = std::strtod(text.c_str(), &end);
  const std::string_view rest = trimmed(end);
  if (end == text.c_str() || !rest.starts_with('*') || !std::isfinite(factor) || factor <= 0) return std::nullopt;
  std::optional<GateOperand> operand = operand_of(std::string(trimmed(rest.substr(1))), names);
  if (operand) operand->factor = factor;
  return operand;
}

std::string shown(const std::string& metric, double value) {
  return metric.ends_with("_bytes") ? format_bytes(static_cast<std::size_t>(std::max(0.0, value)))
                                    : fmt::format("{:.4g}", value);
}
std::string shown(const std::string& metric, const Interval& interval) {
  if (interval.low == interval.high) return shown(metric, interval.middle);
  return fmt::format("{} [{}, {}]", shown(metric, interval.middle), shown(metric, interval.low),
                     shown(metric, interval.high));
}

/// Whether it holds for every value that the interval leaves possible.
bool holds_for_all(Gate::Op op, const Interval& interval, double limit) {
  if (op == Gate::Op::kNotEqual) return limit < interval.low || limit > interval.high;
  return replay::holds(op, interval.low, limit) && replay::holds(op, interval.high, limit);
}

}  // namespace

GateExpression parse_gate_expression(std::string_view text, const GateNames& names) {
  GateExpression gate;
  gate.text = std::string(trimmed(text));
  const auto fail = [&](const std::string& why) {
    throw ConfigError(fmt::format("--fail-if \"{}\": {}; for example 'b > 1.05 * a' or '{} > +5%'", gate.text, why,
                                  names.metrics.front()));
  };
  const auto parts = replay::split_comparison(gate.text);
  if (!parts) fail("no comparison in it");
  gate.op = parts->op;
  const std::optional<GateOperand> left = operand_of(parts->left, names);
  if (!left) {
    std::vector<std::string> known = names.subjects;
    known.insert(known.end(), names.metrics.begin(), names.metrics.end());
    const std::string near = nearest_name(parts->left, known);
    fail(fmt::format("\"{}\" is neither a subject nor a figure; {}", parts->left,
                     near.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : "did you mean " + near + "?"));
  }
  gate.left = *left;
  gate.right = product_of(parts->right, names);
  if (gate.right) {
    // A subject alone means the figure that the other side names.
    if (subject_of(parts->left, names)) gate.left.metric = gate.right->metric;
    if (!gate.right->subject) fail("the right side names no subject");
    return gate;
  }
  try {
    gate.value = replay::parse_gate_value(gate.left.metric, parts->right);
  } catch (const ConfigError& error) {
    fail(error.what());
  }
  if (gate.value.is_relative && gate.left.subject == std::size_t{0})
    fail("the first subject is what the others are held against");
  return gate;
}

GateFigures::~GateFigures() = default;

std::optional<Interval> GateFigures::ratio(std::size_t which, const GateOperand& left, std::size_t left_subject,
                                           const GateOperand& right, std::size_t right_subject) const {
  const auto mine = figure(which, left_subject, left.metric);
  const auto its = figure(which, right_subject, right.metric);
  if (!mine || !its) return std::nullopt;
  if (its->middle == 0) {
    if (mine->middle == 0) return Interval{1, 1, 1};
    return Interval{HUGE_VAL, HUGE_VAL, HUGE_VAL};
  }
  return Interval{mine->low / its->high, mine->middle / its->middle, mine->high / its->low};
}

std::vector<std::string> tripped(const GateExpression& gate, const GateFigures& figures) {
  std::vector<std::string> sentences;
  for (std::size_t which = 0; which < figures.cases(); ++which) {
    for (std::size_t subject = 0; subject < figures.subjects(); ++subject) {
      if (gate.left.subject && *gate.left.subject != subject) continue;
      const std::string name = figures.case_name(which) + ", " + figures.subject_name(subject);
      const bool against_first = !gate.right && gate.value.is_relative;
      if (against_first && subject == 0) continue;
      if (gate.right && !gate.left.subject && *gate.right->subject == subject) continue;
      if (gate.right || (against_first && gate.value.is_percentage)) {
        const GateOperand first{.subject = 0, .metric = gate.left.metric};
        const GateOperand& right = gate.right ? *gate.right : first;
        const double limit = gate.right ? right.factor : 1 + gate.value.value / 100;
        const auto ratio = figures.ratio(which, gate.left, subject, right, *right.subject);
        if (ratio && holds_for_all(gate.op, *ratio, limit)) {
          sentences.push_back(fmt::format("{}: {} is {} times that of {}: tripped '{}'", name, gate.left.metric,
                                          shown("", *ratio), figures.subject_name(*right.subject), gate.text));
        }
        continue;
      }
      const auto figure = figures.figure(which, subject, gate.left.metric);
      if (!figure) continue;
      double limit = gate.value.value;
      if (against_first) {
        const auto first = figures.figure(which, 0, gate.left.metric);
        if (!first) continue;
        limit += first->middle;
      }
      if (holds_for_all(gate.op, *figure, limit)) {
        sentences.push_back(fmt::format("{}: {} is {}: tripped '{}'", name, gate.left.metric,
                                        shown(gate.left.metric, *figure), gate.text));
      }
    }
  }
  return sentences;
}

}  // namespace tenon::measure
