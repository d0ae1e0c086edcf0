// The figures that come out of an experiment.
#pragma once

#include <tenon/memory/stats.h>

#include <cstdint>
#include <string>
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

struct ExperimentResult {
  std::vector<EpochResult> epochs;
  std::vector<double> losses;   ///< every step's, exact: equal runs have equal bits
  double test_accuracy = 0;     ///< of the last epoch
  std::int64_t parameters = 0;  ///< elements
  std::int64_t steps = 0;
  std::int64_t planned_steps = 0;  ///< that the run would have had in all
  bool interrupted = false;        ///< the sink asked it to end before that
  std::int64_t kept_step = 0;      ///< the last one whose state is in the run's state file; 0: none
  std::string state_problem;       ///< why the state could not be kept
  double seconds = 0;              ///< of the whole run, reading data included
  std::vector<double> step_ms;     ///< each training step
  std::int64_t warmup_steps = 0;   ///< steps before device calls are counted
  std::int64_t device_calls_after_warmup = 0;
  MemoryStats memory;  ///< of the device's allocator when training ended
  std::vector<MemorySample> timeline;
  std::int64_t oom_recoveries = 0;                      ///< steps that went on after trim and retry
  std::vector<std::pair<std::string, double>> figures;  ///< anything else worth a column: "grad_norm", …
};

}  // namespace tenon
