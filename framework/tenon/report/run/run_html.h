// The report of a training run or of a sweep: one HTML file made from result.json, which needs nothing else.
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

/// Figures, memory over the steps by what it is for, the course of the loss, every setting with where it came from.
/// `result_json` is the text of a run's result.json, and all that a page is made of: of a run that crashed, one that is
/// resumed, and a cell of a sweep there is nothing else, and no page says other than its file. Throws Error when it is
/// none.
TENON_API std::string run_html(const std::string& result_json);

struct SweepPageCell {
  std::string name;
  std::string result;  ///< the text of its result.json; empty where it has none
  std::string page;    ///< its own report, from the sweep's folder; empty where there is none
};

/// The comparison with a link to each cell's page, and the cells' memory and losses over the steps in one picture each.
/// `cells` are the rows of the comparison; `remarks` are lines.
TENON_API std::string sweep_html(const std::string& name, const Table& comparison,
                                 const std::vector<SweepPageCell>& cells, const std::string& remarks);

}  // namespace tenon
