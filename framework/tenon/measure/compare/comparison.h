// Results side by side: cases of one name are held against those of the first set.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/compare/figure_verdict.h>
#include <tenon/measure/compare/result_set.h>
#include <tenon/measure/statistics/gate_expression.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::measure {

/// One case in every set; null where a set lacks it.
struct ComparedCase {
  std::string name;
  std::vector<const ResultCase*> of_set;
};

/// A setting that is not the same in all sets; empty text where a set lacks it.
struct ChangedSetting {
  std::string key;
  std::vector<std::string> values;
};

struct Comparison {
  std::vector<ResultSet> sets;
  std::vector<ComparedCase> cases;  ///< in the order of the first set, then what later ones have beside it
  /// Fields of which every set has one value, and not all the same: one allocator here, another one there. They tell
  /// the sets apart, not the cases, whose names leave them out.
  std::vector<ChangedSetting> set_fields;
  /// Of cases that are held against each other: options of the allocator, and the files that plugins came from.
  std::vector<ChangedSetting> allocators;
};

/// The row of the allocator that wastes nothing, which every replay has: it is of no set in particular.
TENON_API bool is_ideal(const ResultCase& found);

/// Which cases are kept: "WORD" stands in the name, "FIELD=WORD" in that field; '*' stands for anything. One of several
/// filters is enough.
TENON_API bool passes(const ResultCase& found, const std::vector<std::string>& filters);

/// Cases of one name are held against each other; then, where of one plugin each set has a single case left over,
/// these: old options against new ones. Throws ConfigError where the sets are of different kinds, or where no case
/// passes the filters.
TENON_API Comparison compare(std::vector<ResultSet> sets, const std::vector<std::string>& filters);

/// Whether the verdict is that nothing differs: exact figures that are equal, of cases that had the same end.
TENON_API bool is_same_figure(const FigureInfo& info, const ComparedCase& found);

/// set_fields and allocators, then the settings of runs and sweeps, and the plugins that were built again between them;
/// and the environment.
TENON_API std::vector<ChangedSetting> changed_settings(const Comparison& comparison);
TENON_API std::vector<ChangedSetting> changed_environment(const Comparison& comparison);

/// Histories (or workloads) by allocators: each figure over that of the first column, or over the first set's where
/// there are several sets.
struct FigureMatrix {
  std::string metric;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<std::optional<double>>> ratios;  ///< by row, then by column; empty: no figure, or OOM
  std::vector<std::vector<std::string>> notes;             ///< what stands there instead
  std::vector<std::optional<double>> means;                ///< geometric, over the rows that every column has
  std::size_t mean_rows = 0;
};
/// Empty where the sets hold fewer than two histories, or the metric of nothing.
TENON_API std::optional<FigureMatrix> figure_matrix(const Comparison& comparison, std::size_t set,
                                                    const std::string& metric);

/// What gates of a comparison are judged on: the sets are the subjects.
class TENON_API ComparisonFigures final : public GateFigures {
 public:
  explicit ComparisonFigures(const Comparison& comparison) : comparison_(comparison) {}
  static GateNames names(const Comparison& comparison);
  std::size_t cases() const override { return comparison_.cases.size(); }
  std::string case_name(std::size_t which) const override { return comparison_.cases[which].name; }
  std::size_t subjects() const override { return comparison_.sets.size(); }
  std::string subject_name(std::size_t subject) const override { return comparison_.sets[subject].path; }
  /// A case that is not in both results, that failed, that ran out of memory where the figure needs the end, or of
  /// which there are too few measurements.
  std::string why_unjudged(const GateQuestion& question) const override;
  std::optional<Interval> figure(std::size_t which, std::size_t subject, const std::string& metric) const override;
  std::optional<Interval> ratio(std::size_t which, const GateOperand& left, std::size_t left_subject,
                                const GateOperand& right, std::size_t right_subject) const override;

 private:
  const Comparison& comparison_;
};

}  // namespace tenon::measure
