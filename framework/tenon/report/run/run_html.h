// The report of a training run or of a sweep: one HTML file made from result.json, which needs nothing else.
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/table.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Figures, memory over the steps by what it is for, the course of the loss, every setting with where it came from.
/// `result_json` is the text of a run's result.json. Throws Error when it is none.
TENON_API std::string run_html(const std::string& result_json);

/// The comparison, and the cells' memory and losses over the steps in one picture each. `cells`: a name and the text of
/// result.json for each cell that has one.
TENON_API std::string sweep_html(const std::string& name, const Table& comparison,
                                 const std::vector<std::pair<std::string, std::string>>& cells);

}  // namespace tenon
