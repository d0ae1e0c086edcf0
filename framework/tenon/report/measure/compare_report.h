// What `tenon compare` says: what changed, figures side by side with a verdict, matrices; as tables, JSON or a page.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/compare/comparison.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

/// Settings (of runs) and the machine, where the sets differ. Empty where they do not.
TENON_API Table compare_settings(const measure::Comparison& comparison);

/// A row for each case and figure; `all`: those that are the same everywhere too. `by_purpose`: the rows of memory by
/// purpose, or those of all other figures. A narrow screen leaves out the values of b, c … first, then those of a, then
/// the verdicts.
TENON_API Table compare_figures(const measure::Comparison& comparison, bool all, bool by_purpose);

/// "Figures", "Figures of gpt2_adam.trace.gz" where they are of one case alone.
TENON_API std::string figures_title(const measure::Comparison& comparison, const Table& figures, bool by_purpose);

/// How many figures are the same in all sets; which cases are not in all of them; whether the losses are the same.
TENON_API std::vector<std::string> compare_remarks(const measure::Comparison& comparison);

/// A figure over that of the first allocator, histories by allocators, with geometric means; of a later set, over the
/// first set's. `metric` empty: what decides for this kind. A table without rows where there is no matrix.
TENON_API Table compare_matrix(const measure::Comparison& comparison, std::size_t set, const std::string& metric);
TENON_API std::string matrix_title(const measure::Comparison& comparison, std::size_t set, const std::string& metric);

/// The whole text for people: the tables above with headings.
TENON_API std::string compare_text(const measure::Comparison& comparison, bool all, const std::string& metric,
                                   TableFormat format);

/// schema_version 1, kind "compare": sets, settings, rows, gates.
TENON_API std::string compare_json(const measure::Comparison& comparison, bool all,
                                   const std::vector<measure::GateExpression>& gates,
                                   const std::vector<std::vector<std::string>>& trips,
                                   const std::string& environment_json);

/// One offline page: the same tables, and the sets' curves or figures on one axis.
TENON_API std::string compare_html(const measure::Comparison& comparison, const std::string& metric);

}  // namespace tenon
