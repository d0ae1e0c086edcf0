// What `tenon plan` says of a packing: the table, the sentence, the page with the buffers over time and addresses.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/report/table.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tenon {

struct PlanSummary {
  std::string name;       ///< of the history or the problem
  std::string time_unit;  ///< of its lives: "requests", "the problem's time"
  std::span<const packing::Buffer> buffers;
  packing::PackResult result;
  std::optional<std::uint64_t> capacity;

  bool fits() const { return !capacity || result.height <= *capacity; }
  bool is_proven_not_to_fit() const { return capacity && result.lower_bound > *capacity; }
};

/// One row: figures, and the proof as a word: "optimal", "bracket", "fits", "does not fit", "not found".
TENON_API Table plan_table(const PlanSummary& summary);

/// What the figures mean, with what to do about it where it does not fit.
TENON_API std::string plan_sentence(const PlanSummary& summary);

/// Throws Error when the file cannot be written.
TENON_API void write_plan_html(const std::string& path, const PlanSummary& summary);

}  // namespace tenon
