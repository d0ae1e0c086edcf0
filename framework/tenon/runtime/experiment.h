// An experiment as the rest of the program sees it: resolved settings going in, figures coming out.
//
//   TOML + environment + command line --Config--> ExperimentConfig --run_experiment()--> ExperimentResult -->
//   result.json
//
// The runtime knows no training: the layer above declares its sections (config_schema.h), reads them here by type, and
// fills in the result.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/memory/stats.h>
#include <tenon/runtime/config/config_value.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Everything is validated: types, ranges, names of plugins. Made by Config::experiment().
struct ExperimentConfig {
  std::string name;              ///< the key `name`, or the file's stem
  std::filesystem::path folder;  ///< relative paths in the file mean this folder; the current one without a file
  Device device{kCPU, 0};
  StackConfig allocator;
  std::map<std::string, Options, std::less<>> sections;         ///< "model", "data", "train", "report", …
  std::map<std::string, Options, std::less<>> backend_options;  ///< by device kind, those that were given
  std::map<std::string, Position, std::less<>> positions;       ///< by key: where the setting that won stands
  std::vector<std::filesystem::path> plugin_search;             ///< absolute

  /// A section of the schema: config.section("train").integer("epochs").
  TENON_API const Options& section(std::string_view name) const;
  /// A path that the user wrote, relative to the file it stands in.
  TENON_API std::filesystem::path resolve(const std::string& path) const;
  /// An error about one setting, with the position of the setting that won: throw config.error("data.path", "no such
  /// file").
  TENON_API ConfigError error(std::string_view key, std::string_view message) const;
};

/// Puts the plugin search, the backend's options and the allocator in service: after it, device_state(config.device) is
/// the experiment's device. Before any device of that kind is open.
TENON_API void install(const ExperimentConfig& config);

struct Progress {
  std::int64_t step = 0;   ///< done so far, over all epochs
  std::int64_t steps = 0;  ///< in all
  int epoch = 0;           ///< from 1
  int epochs = 0;
  double loss = 0;    ///< of the last step
  std::string phase;  ///< "train", "test", "tested" (an epoch is over, its model lives), "reading data"
};

/// Told while an experiment runs; calls are cheap and frequent, the sink decides what to show.
class TENON_EXPORT ProgressSink {
 public:
  ProgressSink() = default;
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;
  TENON_API virtual ~ProgressSink();
  virtual void progress(const Progress& progress) = 0;
  /// A finished line worth keeping: "epoch 1/5: loss 0.4312, test accuracy 85.2 %, 12.1 s".
  virtual void note(std::string_view line) = 0;
};

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
  double seconds = 0;             ///< of the whole run, reading data included
  std::vector<double> step_ms;    ///< each training step
  std::int64_t warmup_steps = 0;  ///< steps before device calls are counted
  std::int64_t device_calls_after_warmup = 0;
  MemoryStats memory;  ///< of the device's allocator when training ended
  std::vector<MemorySample> timeline;
  std::int64_t oom_recoveries = 0;                      ///< steps that went on after trim and retry
  std::vector<std::pair<std::string, double>> figures;  ///< anything else worth a column: "grad_norm", …
};

}  // namespace tenon
