// Parsing and judging gates over several subjects.
#include <tenon/measure/statistics/gate_expression.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/text/trimmed.h>
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

/// "b" (its metric is left empty), "caching.ns_per_pair", "ns_per_pair"; empty when it names nothing.
std::optional<GateOperand> operand_of(const std::string& text, const GateNames& names) {
  if (const auto subject = subject_of(text, names)) return GateOperand{subject, {}};
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

namespace {

/// A subject without a metric means that of the other side, or the only one there is. False where neither helps.
bool complete(GateExpression& gate, const GateNames& names) {
  std::string& left = gate.left.metric;
  const std::string other = gate.right ? gate.right->metric : std::string();
  if (left.empty()) left = !other.empty() ? other : names.metrics.size() == 1 ? names.metrics.front() : "";
  if (gate.right && gate.right->metric.empty()) gate.right->metric = left;
  return !left.empty();
}

/// A metric that shows what is meant: memory, where there is any.
const std::string& metric_for_example(const GateNames& names) {
  const auto memory = std::ranges::find(names.metrics, "peak_reserved_bytes");
  return memory == names.metrics.end() ? names.metrics.front() : *memory;
}

std::string examples(const GateNames& names) {
  const std::string& metric = metric_for_example(names);
  const std::string of = names.metrics.size() == 1 ? "" : "." + metric;
  return fmt::format("'b{} > 1.05 * a{}' or '{} > +5%'", of, of, metric);
}

}  // namespace

GateExpression parse_gate_expression(std::string_view text, const GateNames& names) {
  GateExpression gate;
  gate.text = std::string(trimmed(text));
  const auto fail = [&](const std::string& why) {
    throw ConfigError(fmt::format("--fail-if \"{}\": {}; for example {}", gate.text, why, examples(names)));
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
  if (!complete(gate, names))
    fail(fmt::format("\"{}\" alone names no figure: say which is meant, of {}", parts->left,
                     fmt::join(names.metrics, ", ")));
  if (gate.right) {
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

namespace {

/// Whether the gate says anything of this subject: not of the one that it holds the others against.
bool is_asked(const GateExpression& gate, std::size_t subject) {
  if (gate.left.subject) return *gate.left.subject == subject;
  if (gate.right) return *gate.right->subject != subject;
  return !gate.value.is_relative || subject != 0;
}

GateQuestion question_of(const GateExpression& gate, std::size_t which, std::size_t subject) {
  GateQuestion question{.which = which, .subject = subject, .metric = gate.left.metric};
  if (gate.right) {
    question.against = gate.right->subject;
    question.against_metric = gate.right->metric;
  } else if (gate.value.is_relative) {
    question.against = 0;
    question.against_metric = gate.left.metric;
  }
  return question;
}

struct GateAnswer {
  bool is_known = false;
  bool is_tripped = false;
  std::string figure;  ///< "ns_per_pair is 1.1 times that of old.so"
};

GateAnswer answer(const GateExpression& gate, const GateQuestion& question, const GateFigures& figures) {
  const std::string& metric = gate.left.metric;
  if (gate.right || gate.value.is_percentage) {
    const GateOperand first{.subject = 0, .metric = metric};
    const GateOperand& right = gate.right ? *gate.right : first;
    const auto ratio = figures.ratio(question.which, gate.left, question.subject, right, *right.subject);
    if (!ratio) return {};
    const double limit = gate.right ? right.factor : 1 + gate.value.value / 100;
    return {true, holds_for_all(gate.op, *ratio, limit),
            fmt::format("{} is {} times that of {}", metric, shown("", *ratio), figures.subject_name(*right.subject))};
  }
  const auto figure = figures.figure(question.which, question.subject, metric);
  if (!figure) return {};
  Interval change = *figure;
  if (question.against) {
    const auto first = figures.figure(question.which, *question.against, metric);
    if (!first) return {};
    change = {figure->low - first->high, figure->middle - first->middle, figure->high - first->low};
  }
  return {true, holds_for_all(gate.op, change, gate.value.value),
          fmt::format("{} is {}", metric, shown(metric, *figure))};
}

}  // namespace

std::vector<std::string> tripped(const GateExpression& gate, const GateFigures& figures) {
  std::vector<std::string> sentences;
  bool is_judged = false;
  for (std::size_t which = 0; which < figures.cases(); ++which) {
    for (std::size_t subject = 0; subject < figures.subjects(); ++subject) {
      if (!is_asked(gate, subject)) continue;
      const std::string name = figures.case_name(which) + ", " + figures.subject_name(subject);
      const GateQuestion question = question_of(gate, which, subject);
      if (const std::string why = figures.why_unjudged(question); !why.empty()) {
        sentences.push_back(
            fmt::format("{}: {} cannot be judged, {}: tripped '{}'", name, gate.left.metric, why, gate.text));
        continue;
      }
      const GateAnswer found = answer(gate, question, figures);
      is_judged |= found.is_known;
      if (found.is_tripped) sentences.push_back(fmt::format("{}: {}: tripped '{}'", name, found.figure, gate.text));
    }
  }
  if (!is_judged && sentences.empty())
    sentences.push_back(
        fmt::format("no case has {} in every result asked for: tripped '{}'", gate.left.metric, gate.text));
  return sentences;
}

}  // namespace tenon::measure
