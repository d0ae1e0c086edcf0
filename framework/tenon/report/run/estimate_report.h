// Memory before a run: what `tenon run --dry-run` prints, and what result.json holds beside the measured figures.
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/table.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct Estimate {
  std::optional<MemoryEstimate> memory;
  std::string problem;  ///< why there is none
  /// The ceiling (a layer's, or a simulated device's capacity) at which a run would be out of memory; 0: it has none,
  /// or keeps below it.
  std::int64_t out_of_memory_at_bytes = 0;
  /// The purpose that the ceiling is for, of the layer `budget`; empty: it is for all of the memory.
  std::string out_of_memory_purpose = {};
};

/// Estimate / measured - 1 of two peaks; empty where one of the figures is not known.
struct EstimateError {
  std::optional<double> requested, reserved;
};
TENON_API EstimateError estimate_error(const Estimate& estimate, const MemoryStats& measured);
/// "peak requested 0.4 % too low, peak reserved exact"; empty where nothing is known.
TENON_API std::string estimate_error_text(const EstimateError& error);

/// A few lines, each with a '#' before it, so that they may stand in the TOML that a dry run prints.
TENON_API std::string estimate_comment(const Estimate& estimate);

/// Under the table of a sweep's estimates: how many there are, and what they rest on.
TENON_API std::string estimate_footer(std::size_t cells);

/// A JSON object with bytes as integers; with what was measured, also `error`: estimate / measured - 1 for each peak.
TENON_API std::string estimate_json(const Estimate& estimate, const MemoryStats* measured);

/// The cells of a sweep: `keys` are the swept settings, `values` each cell's values for them.
TENON_API Table estimate_table(const std::vector<std::string>& keys,
                               const std::vector<std::vector<std::string>>& values,
                               const std::vector<Estimate>& estimates);

}  // namespace tenon
