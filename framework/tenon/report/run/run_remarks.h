// What stands under the table of a run or a sweep: sentences about its figures. Each ends in a newline, or is empty.
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/run/run_report.h>

#include <string>
#include <vector>

namespace tenon {

/// Where the peak lies and what was held there, and what follows from it: in testing, a smaller test batch. Of several
/// runs only those whose peak lies in testing.
TENON_API std::string peak_remark(const std::vector<RunSummary>& runs);

/// That more lives at the end of each step than at that of the one before, and how to find out who holds it; empty
/// where nothing grows.
TENON_API std::string growth_remark(const ExperimentResult& result);

/// That, and whose the memory was at the peak, where it is attributed.
TENON_API std::string memory_remarks(const ExperimentResult& result);

/// How much memory the ranks of a run took, and which of them most; empty for a run of one.
TENON_API std::string ranks_remark(const std::vector<RankMemory>& ranks);

/// Of a sweep over train.checkpoint: why checkpointing lowers no peak in cells where it does not. `values` are as in
/// run_comparison.
TENON_API std::string checkpoint_remark(const std::vector<std::string>& keys,
                                        const std::vector<std::vector<std::string>>& values,
                                        const std::vector<RunSummary>& runs);

/// One sentence on whether the runs computed the same thing; empty where there is nothing to compare.
TENON_API std::string losses_remark(const std::vector<RunSummary>& runs);

/// How far the estimate was off that was made of the memory: of one run, or the most of several.
TENON_API std::string estimate_remark(const std::vector<RunSummary>& runs);

/// The memory of each device of a run on several, and what those with a cost model do in a step.
TENON_API std::string devices_remark(const ExperimentResult& result);

/// That cells ran beside each other, so that their times say little.
TENON_API std::string sharing_remark(const std::vector<RunSummary>& runs);

/// That others were busy on the machine meanwhile, so that the times say little.
TENON_API std::string noise_remark(const measure::HostState& before);

}  // namespace tenon
