// Gates: parsing and judging.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/core/units.h>
#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/figure_kind.h>
#include <tenon/replay/results/gate.h>
#include <tenon/replay/results/row_fields.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

namespace tenon::replay {

namespace {

constexpr std::string_view kFirstOom = "first_oom_event";  // absent where nothing ran out

/// Shares of 1, which people read and write as percentages.
bool is_share(std::string_view metric) { return metric == "excess" || metric.ends_with("_fragmentation"); }

bool is_size(std::string_view metric) { return metric.ends_with("_bytes"); }

/// What one second is in the metric's unit; 0 where it is not a time.
double seconds_in(std::string_view metric) {
  if (metric.starts_with("allocate_ns.") || metric.starts_with("free_ns.") || metric.ends_with("_ns")) return 1e9;
  if (metric.starts_with("ns_")) return 1e9;
  if (metric.ends_with("_ms") || metric.find("_ms.") != std::string_view::npos) return 1e3;
  return metric == "seconds" || metric.starts_with("seconds_") || metric.ends_with("_seconds") ? 1 : 0;
}

/// "1ms" in seconds; empty when it is none.
std::optional<double> time_of(double number, std::string_view unit) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6},
                                                                   {"ms", 1e-3}, {"s", 1},     {"min", 60}};
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

std::string figure(std::string_view metric, double value) {
  if (is_share(metric)) return fmt::format("{:.1f} %", 100 * value);
  return metric.ends_with("_bytes") ? format_bytes(static_cast<std::size_t>(std::max(0.0, value)))
                                    : fmt::format("{:.6g}", value);
}

std::string name_of(const ReplayRow& row) {
  std::string name = row.trace + ", " + row.spec();
  if (row.capacity_bytes) name += " at " + format_bytes(*row.capacity_bytes);
  return name;
}

}  // namespace

std::optional<Comparison> split_comparison(std::string_view text) {
  static constexpr std::pair<std::string_view, Gate::Op> kOps[] = {
      {">=", Gate::Op::kGreaterEqual}, {"<=", Gate::Op::kLessEqual}, {"==", Gate::Op::kEqual},
      {"!=", Gate::Op::kNotEqual},     {">", Gate::Op::kGreater},    {"<", Gate::Op::kLess},
      {"=", Gate::Op::kEqual}};
  for (const bool is_spaced : {true, false}) {
    for (const auto& [sign, op] : kOps) {
      const std::string wanted = is_spaced ? fmt::format(" {} ", sign) : std::string(sign);
      const std::size_t at = text.find(wanted);
      if (at == std::string_view::npos) continue;
      return Comparison{std::string(trimmed(text.substr(0, at))), std::string(trimmed(text.substr(at + wanted.size()))),
                        op};
    }
  }
  return std::nullopt;
}

bool holds(Gate::Op op, double left, double right) {
  switch (op) {
    case Gate::Op::kGreater:
      return left > right;
    case Gate::Op::kGreaterEqual:
      return left >= right;
    case Gate::Op::kLess:
      return left < right;
    case Gate::Op::kLessEqual:
      return left <= right;
    case Gate::Op::kEqual:
      return left == right;
    case Gate::Op::kNotEqual:
      return left != right;
  }
  return false;
}

std::optional<double> metric_of(const ReplayRow& row, std::string_view metric) {
  std::optional<double> found;
  for_each_number(row, [&](std::string_view key, const auto& value) {
    if (key == metric) found = static_cast<double>(value);
  });
  const auto percentile = [&](std::string_view prefix, const Latency& latency) {
    if (!metric.starts_with(prefix)) return;
    for_each_percentile(latency, [&](std::string_view key, double value) {
      if (key == metric.substr(prefix.size())) found = value;
    });
  };
  percentile("allocate_ns.", row.allocate_ns);
  percentile("free_ns.", row.free_ns);
  if (metric == kFirstOom && row.first_oom_event) found = static_cast<double>(*row.first_oom_event);
  return found;
}

static std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  const ReplayRow row;
  for_each_number(row, [&](const char* key, const auto&) { names.emplace_back(key); });
  names.emplace_back(kFirstOom);
  for_each_percentile(row.allocate_ns,
                      [&](const char* key, double) { names.push_back(std::string("allocate_ns.") + key); });
  for_each_percentile(row.free_ns, [&](const char* key, double) { names.push_back(std::string("free_ns.") + key); });
  return names;
}

GateValue parse_gate_value(std::string_view metric, std::string_view text) {
  const auto fail = [](const std::string& why) { throw ConfigError(why); };
  GateValue found;
  std::string_view value = trimmed(text);
  if (value.empty()) fail("nothing to compare with");
  double sign = 1;
  if (value.front() == '+' || value.front() == '-') {
    found.is_relative = true;
    if (value.front() == '-') sign = -1;
    value.remove_prefix(1);
  }
  const bool has_percent = value.ends_with('%');
  if (has_percent) {
    found.is_percentage = found.is_relative;
    if (!found.is_relative && !is_share(metric))
      fail("a percentage of this metric needs a sign: it is a change against the baseline");
    value = trimmed(value.substr(0, value.size() - 1));
  }
  if (!value.empty() && (value.front() == '+' || value.front() == '-')) fail("two signs");
  const std::string digits(value);
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  const std::string_view unit = trimmed(std::string_view(end));
  const auto size = try_parse_size(value);
  const bool is_hexadecimal = value.starts_with("0x") || value.starts_with("0X");
  if (end == digits.c_str() || is_hexadecimal)
    fail(fmt::format("\"{}\" is neither a number, a size nor a percentage", value));
  if (!std::isfinite(number)) fail(fmt::format("nothing can be compared with \"{}\"", value));
  if (unit.empty()) {
    found.value = sign * (has_percent && !found.is_relative ? number / 100 : number);
  } else if (has_percent) {
    fail(fmt::format("expected a percentage, not \"{}%\"", value));
  } else if (const auto seconds = time_of(number, unit)) {
    if (seconds_in(metric) == 0) fail(fmt::format("\"{}\" is a time, which {} is not", value, metric));
    found.value = sign * *seconds * seconds_in(metric);
  } else if (size) {
    if (!is_size(metric)) fail(fmt::format("\"{}\" is a size, which {} is not", value, metric));
    found.value = sign * static_cast<double>(*size);
  } else {
    fail(fmt::format("\"{}\" is neither a number, a size, a time nor a percentage", value));
  }
  return found;
}

Gate parse_gate(std::string_view text) {
  Gate gate;
  gate.text = std::string(trimmed(text));
  const std::string_view whole = gate.text;
  const auto fail = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("--fail-if \"{}\": {}; for example 'ooms > 0' or 'peak_reserved_bytes > +2%'", whole, why));
  };
  const auto comparison = split_comparison(whole);
  if (!comparison) fail(whole.find('!') == std::string_view::npos ? "no comparison in it" : "'!' without '='");
  gate.metric = comparison->left;
  gate.op = comparison->op;
  const std::vector<std::string> names = metric_names();
  if (std::ranges::find(names, gate.metric) == names.end()) {
    const std::string near = nearest_name(gate.metric, names);
    fail(fmt::format("unknown metric \"{}\"; {}", gate.metric,
                     near.empty() ? fmt::format("known: {}", fmt::join(names, ", ")) : "did you mean " + near + "?"));
  }
  try {
    const GateValue parsed = parse_gate_value(gate.metric, comparison->right);
    gate.value = parsed.value;
    gate.is_relative = parsed.is_relative;
    gate.is_percentage = parsed.is_percentage;
  } catch (const ConfigError& error) {
    fail(error.what());
  }
  return gate;
}

const ReplayRow* matching_row(const std::vector<ReplayRow>& rows, const ReplayRow& row) {
  const ReplayRow* found = nullptr;
  for (const ReplayRow& other : rows) {
    if (other.trace != row.trace || other.allocator != row.allocator || other.options != row.options ||
        other.capacity_bytes != row.capacity_bytes)
      continue;
    if (other.label == row.label) return &other;  // of several builds of one plugin the one that was typed so
    if (found == nullptr) found = &other;
  }
  return found;
}

namespace {

/// Against the baseline's row: why the gate cannot be judged, or that it trips; empty where it does not.
std::string tripped_against(const Gate& gate, const ReplayRow& row, double value, const ReplayRow* before) {
  const auto unjudged = [&](const std::string& why) {
    return fmt::format("{}: {} is {}: {} cannot be judged, {}", name_of(row), gate.metric, figure(gate.metric, value),
                       gate.text, why);
  };
  if (before == nullptr) return unjudged("the baseline has no such row");
  if (!before->failure.empty()) return unjudged("the baseline's row failed: " + before->failure);
  if (needs_completion(gate.metric) && ran_out(*before) != ran_out(row))
    return unjudged(ran_out(row).empty() ? "the baseline ran out of memory: " + ran_out(*before) : ran_out(row));
  const std::optional<double> then = metric_of(*before, gate.metric);
  if (!then) return unjudged("nothing ran out in the baseline");
  if (is_measured(gate.metric)) return unjudged(kOneFileEach);
  const double limit = gate.is_percentage ? *then * (1 + gate.value / 100) : *then + gate.value;
  if (!holds(gate.op, value, limit)) return {};
  return fmt::format("{}: {} is {} (baseline {}): tripped '{}'", name_of(row), gate.metric, figure(gate.metric, value),
                     figure(gate.metric, *then), gate.text);
}

}  // namespace

std::vector<std::string> tripped(const Gate& gate, const std::vector<ReplayRow>& rows,
                                 const std::vector<ReplayRow>& baseline) {
  std::vector<std::string> sentences;
  for (const ReplayRow& row : rows) {
    if (is_ideal(row) || !row.failure.empty()) continue;
    const std::optional<double> found = metric_of(row, gate.metric);
    if (!found) continue;  // nothing ran out: there is no first time
    if (gate.is_relative) {
      std::string sentence = tripped_against(gate, row, *found, matching_row(baseline, row));
      if (!sentence.empty()) sentences.push_back(std::move(sentence));
    } else if (needs_completion(gate.metric) && !ran_out(row).empty()) {
      sentences.push_back(
          fmt::format("{}: {} cannot be judged, {}: tripped '{}'", name_of(row), gate.metric, ran_out(row), gate.text));
    } else if (holds(gate.op, *found, gate.value)) {
      sentences.push_back(
          fmt::format("{}: {} is {}: tripped '{}'", name_of(row), gate.metric, figure(gate.metric, *found), gate.text));
    }
  }
  return sentences;
}

}  // namespace tenon::replay
