// A configuration: everything that was set, where, which setting won, and what it means.
//
//   command line KEY=VALUE  >  environment TENON_SECTION__KEY  >  file  >  defaults
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/runtime/config/config_value.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/config/section_spec.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

struct ConfigRequest {
  std::filesystem::path file;          ///< empty: none
  std::vector<std::string> overrides;  ///< "KEY=VALUE", later ones win
  bool sweep_overrides = false;        ///< a list for a setting of one value is a sweep over it (--sweep)
  bool ignore_sweep = false;           ///< [sweep] is checked, but not run (--no-sweep)
  bool use_environment = true;
  std::vector<SectionSpec> sections;  ///< of the layers above: model, data, train
};

/// One setting with its history.
struct ExplainedSetting {
  struct Source {
    Position position;
    std::string text;
  };
  std::string key;
  std::string text;  ///< the value in force, as TOML
  std::string help;
  std::vector<std::string> choices;  ///< the only words allowed; empty: any
  Position winner;
  std::vector<Source> overruled;  ///< strongest first; the default is not listed
};

/// One cell of a sweep.
struct SweepPoint {
  std::vector<std::string> values;     ///< for people: one for each of sweep_keys()
  std::vector<std::string> overrides;  ///< for the command line: "train.epochs=2"
};

class TENON_API Config {
 public:
  /// Reads, merges and validates everything, sweep included, loading the plugins that are named: for their option
  /// schemas. Throws ConfigError with a position, or PluginError.
  static Config load(const ConfigRequest& request);

  /// What a run gets. With a sweep: the settings outside it.
  ExperimentConfig experiment() const;

  /// What varies: "row" where [sweep.rows] names its cells, then the keys that are swept; and the product of the rows
  /// and their values, the last key fastest. Empty without a sweep.
  std::vector<std::string> sweep_keys() const;
  std::vector<SweepPoint> sweep_cells() const;

  /// What is not an error and may surprise: an axis of the file's sweep that a stronger setting has taken the place of.
  std::vector<std::string> remarks() const;

  /// A TOML file that means the same everywhere: all settings, paths absolute, no sweep.
  std::string resolved_toml() const;
  /// Every setting in force, in the order of the schema.
  std::vector<ExplainedSetting> explain() const;

  struct State;

 private:
  explicit Config(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace tenon
