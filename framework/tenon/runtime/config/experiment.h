// An experiment's resolved settings.
//
//   TOML + environment + command line --Config--> ExperimentConfig --train: run_experiment()--> ExperimentResult
//
// The runtime does not know about training: the layer above declares its sections (section_spec.h) and reads them here
// by type.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/config/position.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The ranks of a run.
struct DistributedConfig {
  std::string name;  ///< the communicator's; empty: one process
  Options options;   ///< its own
};

/// Everything is validated: types, ranges, names of plugins. Made by Config::experiment().
struct ExperimentConfig {
  std::string name;                ///< the key `name`, or the file's stem
  std::string folder;              ///< relative paths in the file mean this folder; the current one without a file
  Device device{kCPU, 0};          ///< the first of them
  std::vector<Device> devices;     ///< of one kind; several: every batch is divided among them
  bool names_device_kind = false;  ///< "cuda": each rank of a machine has a device of its own, see device_of_rank()
  StackConfig allocator;
  DistributedConfig distributed;
  std::map<std::string, Options, std::less<>> sections;         ///< "model", "data", "train", "report", …
  std::map<std::string, Options, std::less<>> backend_options;  ///< by device kind, those that were given
  std::map<std::string, Position, std::less<>> positions;       ///< by key: where the setting that won stands
  std::vector<std::string> plugin_search;                       ///< absolute

  /// A section of the schema: config.section("train").integer("epochs").
  TENON_API const Options& section(std::string_view name) const;
  /// "simulated:0", or "simulated:0, simulated:1".
  TENON_API std::string device_names() const;
  /// A path that the user wrote, relative to the file it stands in.
  TENON_API std::string resolve(const std::string& path) const;
  /// An error about one setting, with the position of the setting that won: throw config.error("data.path", "no such
  /// file").
  TENON_API ConfigError error(std::string_view key, std::string_view message) const;
};

/// Puts the plugin search, the backend's options and the allocator in service: after it, device_state(config.device) is
/// the experiment's device. Throws ConfigError once a device of that kind is open.
TENON_API void install(const ExperimentConfig& config);

}  // namespace tenon
