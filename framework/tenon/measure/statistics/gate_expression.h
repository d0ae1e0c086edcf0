// Gates over several subjects: `--fail-if 'b > 1.05 * a'`, 'ns_per_pair > +5%', 'caching.peak_reserved_bytes > 8GiB'.
//
//   SUBJECT.METRIC > FACTOR * SUBJECT.METRIC    two subjects, by name or by letter (a is the first); also >= < <= == !=
//   SUBJECT > FACTOR * SUBJECT     the same where there is but one metric, as in a bench
//   SUBJECT.METRIC > VALUE         one subject; a VALUE as in gates of a replay: a number, a size, a time
//   METRIC > VALUE                 every subject
//   METRIC > +5%                   every subject but the first, which it is held against; also -5%, +100MiB
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/statistics/median_interval.h>
#include <tenon/replay/results/gate.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::measure {

struct GateOperand {
  std::optional<std::size_t> subject;  ///< empty: each of them
  std::string metric;
  double factor = 1;
};

struct GateExpression {
  std::string text;
  GateOperand left;
  replay::Gate::Op op = replay::Gate::Op::kGreater;
  std::optional<GateOperand> right;  ///< or the value
  replay::GateValue value;
};

/// What an expression may name.
struct GateNames {
  std::vector<std::string> subjects;
  std::vector<std::string> metrics;  ///< where there is but one, a subject alone means it
};

/// Throws ConfigError that shows the expression and says what was expected. A subject without a metric means that of
/// the other side.
TENON_API GateExpression parse_gate_expression(std::string_view text, const GateNames& names);

/// What a gate asks of one case: a subject's figure, or its relation to another subject's.
struct GateQuestion {
  std::size_t which = 0;
  std::size_t subject = 0;
  std::string metric;
  std::optional<std::size_t> against;  ///< another subject
  std::string against_metric;
};

/// The figures that gates are judged on.
class TENON_EXPORT GateFigures {
 public:
  GateFigures() = default;
  GateFigures(const GateFigures&) = delete;
  GateFigures& operator=(const GateFigures&) = delete;
  TENON_API virtual ~GateFigures();
  virtual std::size_t cases() const = 0;
  virtual std::string case_name(std::size_t which) const = 0;
  virtual std::string subject_name(std::size_t subject) const = 0;
  virtual std::size_t subjects() const = 0;
  /// Why the question has no answer though it should have one: the case is gone, its run failed, the measurements are
  /// too few. Empty where it has one, and where there is nothing to ask.
  virtual std::string why_unjudged(const GateQuestion& question) const = 0;
  /// An exact figure is an interval of one point; empty where the case has none.
  virtual std::optional<Interval> figure(std::size_t which, std::size_t subject, const std::string& metric) const = 0;
  /// A subject's figure over another's; the default divides exact ones.
  TENON_API virtual std::optional<Interval> ratio(std::size_t which, const GateOperand& left, std::size_t left_subject,
                                                  const GateOperand& right, std::size_t right_subject) const;
};

/// The cases that trip the gate, a sentence each: those whose whole interval does, so that noise trips nothing; and
/// those that cannot be judged, since silence would read as a pass. Where nothing at all is judged, that is a sentence.
TENON_API std::vector<std::string> tripped(const GateExpression& gate, const GateFigures& figures);

}  // namespace tenon::measure
