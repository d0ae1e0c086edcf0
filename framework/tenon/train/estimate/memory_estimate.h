// What a run will need, and whether it fits, without running it.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/stats.h>
#include <tenon/runtime/config/experiment.h>

#include <cstdint>
#include <optional>

namespace tenon {

struct MemoryEstimate {
  std::int64_t parameters = 0;  ///< elements
  MemoryStats memory;           ///< peaks; without the workspace that kernels ask for
  std::int64_t batch_size =
      0;  ///< what train.batch_size = "auto" becomes, as far as addresses say it; 0: a number is set
};

/// What a run of this experiment will need: two steps and a test batch, or all of serving, are run on a simulated
/// device that has addresses and computes nothing, under the experiment's own allocator without its layers. No device
/// may be open; none is afterwards. Throws what run_experiment throws, and PluginError without the simulated backend.
TENON_API MemoryEstimate estimate_memory(const ExperimentConfig& config);

/// How the run of that estimate ends under the ceilings of its own that the estimate leaves out: the layers `limit` and
/// `budget`, and the capacity that [device.KIND] says. Empty where it has none, or comes to its end. Throws what
/// estimate_memory throws.
TENON_API std::optional<OutOfMemoryInfo> estimate_shortage(const ExperimentConfig& config);

}  // namespace tenon
