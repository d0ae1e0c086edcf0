// What a Config holds, shared by its sources only.
#pragma once

#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/section_lookup.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

/// One key with everything that was set for it.
struct Setting {
  std::string key;
  std::vector<ConfigEntry> entries;  ///< weakest first
  const ConfigEntry& winner() const { return entries.back(); }
};

struct Axis {
  std::string key;
  ConfigList values;
  Position position;
};

/// A cell with a name of its own: [sweep.rows] NAME = { "train.checkpoint" = true, … }.
struct SweepRow {
  std::string name;
  std::vector<ConfigEntry> settings;  ///< keys without "sweep.rows.NAME."
};

struct Config::State {
  std::filesystem::path file;
  std::filesystem::path folder;  ///< absolute; of the file, or the current one
  SectionLookup book{{}};
  std::map<std::string, Options, std::less<>> options;  ///< by section, those of the book and those of plugins
  std::vector<Setting> settings;                        ///< in the order of their first appearance
  std::vector<SweepRow> rows;
  std::vector<Axis> axes;
  ConfigList displaced_allocators;  ///< those that something stronger outranks: their sections may stand in the file
  std::vector<std::string> remarks;
  std::vector<Device> devices{Device(kCPU, 0)};
  bool names_kind = false;  ///< device.name is a kind alone
  StackConfig allocator;
  DistributedConfig distributed;
  std::string allocator_spec;  ///< allocator.name without the options that are settings of its section

  const Setting* find(std::string_view key) const;
  /// What relative paths in a setting mean.
  std::filesystem::path base_of(const Position& position) const;
  Options& options_of(const SectionSpec& section);
};

/// Converts one value to what `option` of `section` wants and sets it. Throws ConfigError at the value's position.
void set_option(Options& options, const SectionSpec& section, const OptionSpec& option, const ConfigValue& value,
                const std::filesystem::path& base);

/// Moves [sweep] and, when asked, lists on the command line out of `settings` into `rows` and `axes`.
void take_sweep(Config::State& state, const ConfigRequest& request);

}  // namespace tenon
