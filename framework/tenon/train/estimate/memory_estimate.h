// What a run will need, and whether it fits, without running it.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/stats.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/estimate/planned_ranks.h>
#include <tenon/train/experiment_result.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What one of the devices of an estimated run needs, at its peaks.
struct DeviceEstimate {
  std::string device;
  std::string layers;  ///< "block0 to block3" of a stage of a pipeline; empty: it is none
  std::int64_t requested_bytes = 0, allocated_bytes = 0, reserved_bytes = 0;
  std::array<std::int64_t, kPurposeCount> requested_by_purpose{};
  ParameterSizes parameters;
  std::int64_t of(Purpose purpose) const { return requested_by_purpose[static_cast<std::size_t>(purpose)]; }
};

struct MemoryEstimate {
  std::int64_t parameters = 0;          ///< elements
  MemoryStats memory;                   ///< peaks of the first device; without the workspace that kernels ask for
  std::vector<DeviceEstimate> devices;  ///< one at least, but for serving
  /// What train.batch_size = "auto" becomes, as far as addresses say it; 0: a number is set.
  std::int64_t batch_size = 0;
};

/// What a run of this experiment will need: steps until its memory has settled and a batch of each test, or all of
/// serving, are run on a simulated device that has addresses and computes nothing, under the experiment's own allocator
/// without its layers. With several ranks it is what that one of them needs, none of which is started. No device may be
/// open; none is afterwards. Throws what run_experiment throws, and PluginError without the simulated backend.
TENON_API MemoryEstimate estimate_memory(const ExperimentConfig& config, const train::PlannedRank& rank = {});

/// How the run of that estimate ends under the ceilings of its own that the estimate leaves out: the layers `limit` and
/// `budget`, and the capacity that [device.KIND] says. Empty where it has none, or comes to its end. Throws what
/// estimate_memory throws.
TENON_API std::optional<OutOfMemoryInfo> estimate_shortage(const ExperimentConfig& config,
                                                           const train::PlannedRank& rank = {});

/// Whether that run comes to its end under those ceilings, and the steps after that, up to a thousand, have memory as
/// well: what is asked of a batch that "auto" chooses. Throws what estimate_memory throws.
TENON_API bool estimate_fits(const ExperimentConfig& config);

}  // namespace tenon
