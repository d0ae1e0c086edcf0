// What can be said of one figure of two cases.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/compare/figure.h>
#include <tenon/measure/compare/result_set.h>
#include <tenon/measure/statistics/median_interval.h>

#include <optional>
#include <string>

namespace tenon::measure {

/// Of all intervals of a comparison.
inline constexpr double kCompareConfidence = 0.99;

/// What can be said of a figure of one set against that of the first.
struct FigureVerdict {
  enum class Kind {
    kNone,           ///< one of them has no figure
    kSame,           ///< equal, of figures that are exact
    kDifferent,      ///< by an exact figure, or by an interval of measured ones
    kNoEvidence,     ///< the interval reaches 1
    kTooFew,         ///< measurements
    kShared,         ///< cells ran beside each other
    kResumed,        ///< a run took its memory from the device again
    kNotComparable,  ///< memory ran out
    kFailed,         ///< one of the runs did
  };
  Kind kind = Kind::kNone;
  /// "same", "better by 2.0 %", "worse: 3 instead of 0", "faster by 4 to 6 %" (99 % interval of unpaired samples), "no
  /// verdict: one run each (+3.0 %)", "no verdict: one file each (-1.2 %)", "no verdict: disqualified"; empty for kNone
  std::string text;
  /// Of the last five kinds, as a clause: "one run each: …"; a gate says it.
  std::string why;
};

/// Times of one result a side get no verdict: a machine is slower at one time than at another, which no interval of
/// steps, passes or rounds within one holds. Those of several results a side do, by the spread between them, and so do
/// figures that differ between them.
TENON_API FigureVerdict figure_verdict(const FigureInfo& info, const ResultCase& first, const ResultCase& other);

/// Null where the case has none, or failed.
TENON_API const ResultFigure* figure_of(const ResultCase& found, const FigureInfo& info);

/// Whether the figure differs from one measurement or run to the next.
TENON_API bool is_estimated(const FigureInfo& info, const ResultFigure& figure);

/// The interval of the ratio of two sets of samples that are not pairs; empty where they are too few.
TENON_API std::optional<Interval> unpaired_ratio(const ResultFigure& before, const ResultFigure& after);

}  // namespace tenon::measure
