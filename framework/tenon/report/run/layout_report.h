// What ranks and layouts need: the tables of `tenon run --dry-run` with several devices, `--ranks` and `--layouts`.
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/table.h>
#include <tenon/train/estimate/layouts.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// One device of one rank.
struct RankRow {
  std::int64_t rank = 0;
  std::string device;
  train::RankNeed need;
};

/// As an estimate on addresses has it.
TENON_API RankRow rank_row(std::int64_t rank, const DeviceEstimate& device);

/// A row for each rank's device. `device_bytes` 0: nothing is said of whether it fits.
TENON_API Table ranks_table(const std::vector<RankRow>& rows, std::int64_t device_bytes);
/// "worst: rank 0 on cpu:0 reserves 3.00 MiB, which fits 4.00 MiB".
TENON_API std::string ranks_remark(const std::vector<RankRow>& rows, std::int64_t device_bytes);

/// A layout with what its ranks need, stage by stage, or why it cannot be.
struct LayoutRow {
  train::ParallelLayout layout;
  std::vector<train::RankNeed> needs;
  std::string problem;
  bool by_theory = false;  ///< what data ranks divide, not run
  /// The need of the rank that reserves most; null where there is a problem.
  TENON_API const train::RankNeed* worst() const;
};

/// A row for each layout that can be, with the bytes of its neediest rank.
TENON_API Table layouts_table(const std::vector<LayoutRow>& rows, std::int64_t device_bytes);
/// How many layouts there are, how many fit, why others cannot be, and what the figures rest on.
TENON_API std::string layouts_footer(const std::vector<LayoutRow>& rows, std::int64_t device_bytes);
/// Whether one of them fits a device of that size.
TENON_API bool has_fitting(const std::vector<LayoutRow>& rows, std::int64_t device_bytes);

}  // namespace tenon
