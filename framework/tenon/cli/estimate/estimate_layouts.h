// What ranks and layouts need, each estimated in a process of its own.
#pragma once

#include <tenon/cli/estimate/estimate_apart.h>
#include <tenon/report/run/layout_report.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::cli {

/// Told how many of how many are done.
using EstimateProgress = std::function<void(std::size_t done, std::size_t all)>;

/// What each of so many ranks needs; those that compute the same are estimated once. The estimate of rank 0 stands in
/// front, with all that is wrong. Throws ConfigError for an experiment that ranks cannot share.
struct RanksEstimate {
  EstimateApart first;
  std::vector<RankRow> rows;
};
RanksEstimate estimate_ranks(const ExperimentConfig& experiment, int ranks, double call_seconds);

/// What each layout of so many devices needs.
std::vector<LayoutRow> estimate_layouts(const ExperimentConfig& experiment, std::int64_t devices, double call_seconds,
                                        const EstimateProgress& progress);

}  // namespace tenon::cli
