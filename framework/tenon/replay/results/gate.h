// Gates: `--fail-if 'ooms > 0'`, `--fail-if 'peak_reserved_bytes > +2%'` against a baseline.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// METRIC OP VALUE. OP is one of > >= < <= == !=. VALUE is a finite number, a size ("24GiB") of a metric in
/// bytes, a time ("20ms") of one in seconds or nanoseconds, or a change against the baseline's row: "+2%", "-5%",
/// "+100MiB". Of a share (excess, …_fragmentation) "10%" is 0.1. `first_oom_event` of a
/// row in which nothing ran out trips nothing.
struct Gate {
  enum class Op { kGreater, kGreaterEqual, kLess, kLessEqual, kEqual, kNotEqual };
  std::string text;
  std::string metric;
  Op op = Op::kGreater;
  double value = 0;
  bool is_relative = false;    ///< VALUE had a sign
  bool is_percentage = false;  ///< of the baseline's figure
};

/// A gate cut at its operator: at one with spaces around it where there is such a one, since names of subjects may hold
/// '=' and '>'. Empty where there is none.
struct Comparison {
  std::string left, right;
  Gate::Op op;
};
TENON_API std::optional<Comparison> split_comparison(std::string_view text);

/// The VALUE of a gate on this metric. Throws ConfigError that says why it is none.
struct GateValue {
  double value = 0;
  bool is_relative = false;
  bool is_percentage = false;
};
TENON_API GateValue parse_gate_value(std::string_view metric, std::string_view text);

/// Whether `left OP right`; OP as people write it: ">", ">=", "=" …
TENON_API bool holds(Gate::Op op, double left, double right);

/// Throws ConfigError that shows where the expression goes wrong; for an unknown metric the nearest is named.
TENON_API Gate parse_gate(std::string_view text);

/// A row's figure by its key in the JSON; "allocate_ns.p50" for a percentile. Empty when there is none of that name.
TENON_API std::optional<double> metric_of(const ReplayRow& row, std::string_view metric);

/// The rows that trip the gate, a sentence each, and those that it cannot judge, which is not a pass: where memory ran
/// out, of figures that need the end; against a baseline without the row of the same trace, allocator, options and
/// capacity; of times against a baseline, which is one file as this replay is. The ideal row is not judged.
TENON_API std::vector<std::string> tripped(const Gate& gate, const std::vector<ReplayRow>& rows,
                                           const std::vector<ReplayRow>& baseline);

/// The same job in another list, or null.
TENON_API const ReplayRow* matching_row(const std::vector<ReplayRow>& rows, const ReplayRow& row);

}  // namespace tenon::replay
