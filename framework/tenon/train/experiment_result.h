// The figures that come out of an experiment.
#pragma once

#include <tenon/memory/purpose.h>
#include <tenon/memory/stats.h>
#include <tenon/memory/watch/attribution.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

struct EpochResult {
  int epoch = 0;          ///< from 1
  double train_loss = 0;  ///< mean over the epoch's steps
  double test_loss = 0;
  double test_accuracy = 0;  ///< 0 to 1
  double seconds = 0;        ///< training part
};

/// One point of the memory timeline, sampled after a step.
struct MemorySample {
  std::int64_t step = 0;
  std::int64_t requested_bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
  std::int64_t peak_allocated_bytes = 0;  ///< within the step
};

/// A part of a run that may hold the most memory.
enum class RunPhase : std::uint8_t { kSetup, kForward, kBackward, kUpdate, kTesting };
inline constexpr std::array<std::string_view, 5> kRunPhases = {"setup", "forward", "backward", "update", "testing"};
constexpr std::string_view phase_name(RunPhase phase) { return kRunPhases[static_cast<std::size_t>(phase)]; }

/// Where the most was allocated in a run. In "update" the optimiser changes the parameters; "setup" comes before the
/// first step.
struct PeakPlace {
  RunPhase phase = RunPhase::kSetup;
  std::int64_t allocated_bytes = 0;
  std::array<std::int64_t, kPurposeCount> requested_by_purpose{};  ///< the most of each in that phase
};

/// What the memory of one of several ranks came to.
struct RankMemory {
  std::int64_t peak_requested_bytes = 0;
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  std::int64_t peak_optimizer_state_bytes = 0;  ///< as requested, as those below
  std::int64_t peak_parameter_bytes = 0;
  std::int64_t peak_gradient_bytes = 0;  ///< those that pass through backward too
};

/// What a device with a cost model does in a step, on the average; see device/order/virtual_time.h.
struct EstimatedUse {
  double kernel_ms = 0;
  double copy_ms = 0;
  double hidden_copy_ms = 0;  ///< of the copies, while a kernel was running
  double idle = 0;            ///< the part of the step in which no kernel ran
};

/// What a device has of the parameters, in bytes: what plans for several ranks divide.
struct ParameterSizes {
  std::int64_t bytes = 0;          ///< all of them
  std::int64_t trained_bytes = 0;  ///< that have gradients
  std::int64_t largest_bytes = 0;  ///< the largest that has one
  std::int64_t pair_bytes = 0;     ///< the two largest numbered layers that follow each other
  std::int64_t other_bytes = 0;    ///< outside of numbered layers: embeddings, the output layer
};

/// What a device that is a stage of a pipeline has of the model.
struct StageResult {
  std::vector<std::string> layers;
  std::int64_t parameters = 0;          ///< elements
  std::int64_t peak_micro_batches = 0;  ///< whose activations were there at the same time
};

/// One of the devices that a run computed on.
struct DeviceResult {
  std::string device;
  std::int64_t peak_requested_bytes = 0, peak_allocated_bytes = 0, peak_reserved_bytes = 0;
  std::array<std::int64_t, kPurposeCount> peak_requested_by_purpose{};
  std::optional<EstimatedUse> estimated;
  std::optional<StageResult> stage;
  std::optional<memory::AttributionReport> attribution;  ///< with report.attribution, of others than the first
};

struct ExperimentResult {
  std::vector<EpochResult> epochs;
  std::vector<double> losses;   ///< every step's, exact: equal runs have equal bits
  double test_accuracy = 0;     ///< of the last epoch
  std::int64_t parameters = 0;  ///< elements
  std::int64_t examples = 0;    ///< in the training data
  std::int64_t steps = 0;
  std::int64_t planned_steps = 0;  ///< that the run would have had in all
  bool has_settled = true;         ///< of an estimate: memory was as in an earlier step, or the run at its end
  bool interrupted = false;        ///< the sink asked it to end before that
  std::int64_t kept_step = 0;      ///< the last one whose state is in the run's state file; 0: none
  std::string state_problem;       ///< why the state could not be kept
  double seconds = 0;              ///< of the whole run, reading data included
  double earlier_seconds = 0;      ///< of those, in the parts before it was resumed
  std::vector<double> step_ms;     ///< each training step
  std::int64_t warmup_steps = 0;   ///< steps before device calls are counted
  std::int64_t device_calls_after_warmup = 0;
  std::optional<double> estimated_step_ms;      ///< on devices with a cost model: what a step would take there
  std::vector<DeviceResult> devices;            ///< several, or one with a cost model; else none
  std::vector<ParameterSizes> parameter_sizes;  ///< of each device of the run
  MemoryStats memory;                           ///< of the device's allocator when training ended
  PeakPlace peak;
  std::vector<MemorySample> timeline;
  std::vector<RankMemory> ranks;                         ///< by rank; empty where there is one alone
  std::optional<memory::AttributionReport> attribution;  ///< with report.attribution, of the first device
  std::int64_t oom_recoveries = 0;                       ///< steps that went on after trim and retry
  std::vector<std::pair<std::string, double>> figures;   ///< anything else worth a column: "grad_norm", …
};

}  // namespace tenon
