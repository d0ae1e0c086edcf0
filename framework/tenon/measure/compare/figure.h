// The figures that results hold, once for tables, verdicts and gates: what they are called and whether less is better.
// Whether they are measured (another run gives another figure) or counted (it gives the same) follows from the key.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/results/figure_kind.h>

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

  bool is_measured() const { return replay::is_measured(key); }
  /// Counted over a whole run, so that a part that goes on counts some of it again.
  bool counts_parts() const {
    return key == "allocations" || (key.starts_with("device_") && key != "device_calls_per_step");
  }
  bool needs_completion() const { return replay::needs_completion(key); }
};

/// In the order of tables.
TENON_API std::span<const FigureInfo> known_figures();
/// Null for a key of no known figure.
TENON_API const FigureInfo* find_figure(std::string_view key);

}  // namespace tenon::measure
