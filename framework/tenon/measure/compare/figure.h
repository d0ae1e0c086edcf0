// The figures that results hold, once for tables, verdicts and gates: what they are called, whether less is better, and
// whether they are measured (another run gives another figure) or counted (it gives the same).
#pragma once

#include <tenon/core/export.h>

#include <span>
#include <string>
#include <string_view>

namespace tenon::measure {

enum class FigureUnit { kNumber, kBytes, kShare, kMilliseconds, kSeconds, kNanoseconds };
enum class Better { kLess, kMore, kNeither };

struct FigureInfo {
  std::string_view key;    ///< as in the JSON of runs, replays and benches
  std::string_view title;  ///< for people
  FigureUnit unit = FigureUnit::kNumber;
  Better better = Better::kNeither;
  bool is_measured = false;
  bool needs_completion = false;  ///< means nothing where memory ran out: what was not served takes no memory
};

/// In the order of tables.
TENON_API std::span<const FigureInfo> known_figures();
/// Null for a key of no known figure.
TENON_API const FigureInfo* find_figure(std::string_view key);

}  // namespace tenon::measure
