// Results side by side: cases of one name are held against those of the first set.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/compare/figure.h>
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
};

/// Which cases are kept: "WORD" stands in the name, "FIELD=WORD" in that field; '*' stands for anything. One of several
/// filters is enough.
TENON_API bool passes(const ResultCase& found, const std::vector<std::string>& filters);

/// Throws ConfigError where the sets are of different kinds, or where no case passes the filters.
TENON_API Comparison compare(std::vector<ResultSet> sets, const std::vector<std::string>& filters);

/// What can be said of a figure of one set against that of the first.
struct FigureVerdict {
  enum class Kind {
    kNone,           ///< one of them has no figure
    kSame,           ///< equal, of figures that are exact
    kDifferent,      ///< by an exact figure, or by an interval of measured ones
    kNoEvidence,     ///< the interval reaches 1
    kTooFew,         ///< measurements
    kShared,         ///< cells ran beside each other
    kNotComparable,  ///< memory ran out
    kFailed,         ///< one of the runs did
  };
  Kind kind = Kind::kNone;
  /// "same", "better by 2.0 %", "worse: 3 instead of 0", "faster by 4 to 6 %" (99 % interval of unpaired samples), "no
  /// verdict: one measurement each (+3.0 %)", "no verdict: disqualified"; empty for kNone
  std::string text;
};
TENON_API FigureVerdict figure_verdict(const FigureInfo& info, const ResultCase& first, const ResultCase& other);

/// Whether the verdict is that nothing differs: exact figures that are equal.
TENON_API bool is_same_figure(const FigureInfo& info, const ComparedCase& found);

/// set_fields, then the settings of runs and sweeps and the plugins that were built again between them; and the
/// environment.
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

/// Why a gate cannot be judged, a sentence a case: a case that failed, or whose memory ran out where the figure needs
/// its end; or that no case has the figure in every set asked for. Such a gate trips: silence would read as a pass.
TENON_API std::vector<std::string> unjudged(const Comparison& comparison, const GateExpression& gate);

/// What gates of a comparison are judged on: the sets are the subjects.
class TENON_API ComparisonFigures final : public GateFigures {
 public:
  explicit ComparisonFigures(const Comparison& comparison) : comparison_(comparison) {}
  static GateNames names(const Comparison& comparison);
  std::size_t cases() const override { return comparison_.cases.size(); }
  std::string case_name(std::size_t which) const override { return comparison_.cases[which].name; }
  std::size_t subjects() const override { return comparison_.sets.size(); }
  std::string subject_name(std::size_t subject) const override { return comparison_.sets[subject].path; }
  std::optional<Interval> figure(std::size_t which, std::size_t subject, const std::string& metric) const override;

 private:
  const Comparison& comparison_;
};

}  // namespace tenon::measure
